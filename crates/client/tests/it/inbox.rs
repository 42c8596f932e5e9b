//! The inbox: calls, workers and signals.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use domain::{Clock, SystemClock, Timestamp};
use doorstep_client::{
    Assignment, BackoffOptions, ClientError, InboxWorker, LeaseLoss, Ring, SignalOptions, Verdict, WorkReport, WorkerNews, WorkerOptions,
    WorkerStop,
};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::http::{Http, Request};
use crate::support::{EPOCH, client_of, id, within};

/// An item as it was claimed, its lease ending in `lease_ms`.
fn claim(number: u64, lease_ms: u64) -> Value {
    json!({
        "event_id": id(number), "outcome": "ok", "inbox_seq": number, "event_type": "test.happened", "queue": "inbox", "priority": "normal",
        "ack_state": "claimed", "delivery_attempts": 1, "max_attempts": 5, "lease_token": format!("lease-{number}"),
        "visibility_lease_until_utc": "2026-07-12T16:24:12.000Z", "lease_expires_in_ms": lease_ms,
        "attempt_deadline_utc": "2026-07-13T04:24:12.000Z", "payload": {"n": number}
    })
}

fn claims(items: &[Value]) -> Value {
    json!({
        "claims": items, "empty": items.is_empty(), "backlog": {"available": 0, "claimed": 0, "resting": 0},
        "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"}
    })
}

fn subscribed() -> Value {
    json!({
        "session_id": "sess_1", "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"},
        "current_head_seq": 7, "sync_epoch": EPOCH, "recommended_transport": "sse", "poll_after_cursor_url": "/p", "sse_url": "/s",
        "websocket_url": "ws://x", "heartbeat_interval_seconds": 30, "lease_default_seconds": 120, "retention_days": 30
    })
}

fn acked(request: &Request) -> Value {
    json!({"acks": [{"event_id": request.body["acks"][0]["event_id"], "outcome": "ok", "ack_state": "acked", "dead_letter_state": "none"}]})
}

fn quick() -> WorkerOptions {
    let backoff = BackoffOptions { base: Duration::from_millis(5), cap: Duration::from_millis(20), stable_after: Duration::from_mins(1) };
    WorkerOptions { backoff, ..WorkerOptions::default() }
}

/// A worker that runs, and what it told.
struct Running {
    stop: WorkerStop,
    done: tokio::task::JoinHandle<(Result<(), ClientError>, Vec<String>)>,
}

impl Running {
    fn start<F: Future<Output = Verdict> + Send>(
        http: &Http,
        options: WorkerOptions,
        work: impl Fn(Arc<Assignment>) -> F + Send + Sync + 'static,
    ) -> Self {
        let (worker, stop) = (InboxWorker::new(client_of(http.address), options), WorkerStop::default());
        let stopped = stop.clone();
        let done = TaskTracker::new().spawn(async move {
            let mut told = Vec::new();
            let result = worker
                .run(stopped, work, |news| {
                    told.push(match news {
                        WorkerNews::Claimed(item) => format!("claimed {}", item.event_id),
                        WorkerNews::Settled(item, settled) => format!("settled {} {settled:?}", item.event_id),
                        WorkerNews::Waiting { .. } => "waiting".to_owned(),
                        WorkerNews::Unkept { cause } => format!("unkept {cause}"),
                        WorkerNews::Connected => "connected".to_owned(),
                        _ => String::new(),
                    });
                })
                .await;
            (result, told)
        });
        Self { stop, done }
    }

    async fn ended(self) -> (Result<(), ClientError>, Vec<String>) {
        within(self.done).await.unwrap()
    }
}

async fn complete(_: Arc<Assignment>) -> Verdict {
    Verdict::Completed(WorkReport::of("done"))
}

#[tokio::test]
async fn a_worker_opens_a_session_claims_and_acknowledges() {
    let mut http = Http::bind().await;
    let options = WorkerOptions { once: true, lease: Some(Duration::from_secs(90)), queues: vec!["mail".parse().unwrap()], ..quick() };
    let running = Running::start(&http, options, complete);
    let subscribe = http.expect("POST /v1/agent-sessions/subscribe").await;
    assert_eq!((&subscribe.body["wants_claims"], &subscribe.body["supported_transports"]), (&json!(true), &json!(["long-poll"])));
    subscribe.answer(subscribed()).await;
    let next = http.expect("POST /v1/inbox/claim-next").await;
    assert!(next.header("idempotency-key").is_some_and(|key| !key.is_empty()), "{}", next.head);
    assert_eq!(next.body, json!({"session_id": "sess_1", "queues": ["mail"], "limit": 1, "lease_seconds": 90}));
    next.answer(claims(&[claim(1, 90_000)])).await;
    let ack = http.expect("POST /v1/inbox/acknowledge").await;
    let expected = json!({"event_id": id(1), "lease_token": "lease-1", "result": "completed", "summary": "done"});
    assert_eq!(ack.body, json!({"acks": [expected]}));
    let answer = acked(&ack);
    ack.answer(answer).await;
    let (result, told) = running.ended().await;
    result.unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_repeated_under_its_key() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    let lost = http.expect("/claim-next").await;
    let (key, body) = (lost.header("idempotency-key").unwrap().to_owned(), lost.body.clone());
    drop(lost);
    let again = http.expect("/claim-next").await;
    assert_eq!((again.header("idempotency-key").unwrap(), &again.body), (key.as_str(), &body));
    again.answer(claims(&[])).await;
    let (result, told) = running.ended().await;
    result.unwrap();
    assert_eq!(told, ["waiting", "connected"]);
}

#[tokio::test]
async fn another_claim_has_another_key() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { idle_timeout: Some(Duration::from_secs(3)), ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let next = http.expect("/claim-next").await;
        keys.insert(next.header("idempotency-key").unwrap().to_owned());
        next.answer(claims(&[])).await;
    }
    assert_eq!(keys.len(), 2);
    running.stop.drain.cancel();
    running.ended().await.0.unwrap();
}

#[tokio::test]
async fn an_acknowledgement_is_repeated_until_its_answer_is_certain() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    let first = http.expect("/acknowledge").await;
    let body = first.body.clone();
    drop(first);
    http.expect("/acknowledge").await.problem(503, json!({"code": "in_doubt"})).await;
    let third = http.expect("/acknowledge").await;
    assert_eq!(third.body, body);
    let answer = acked(&third);
    third.answer(answer).await;
    let (result, told) = running.ended().await;
    result.unwrap();
    assert!(told[1].contains("Told(Completed"), "{told:?}");
}

#[tokio::test]
async fn an_acknowledgement_that_comes_too_late_is_lost_and_not_repeated() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    http.expect("/acknowledge").await.answer(json!({"acks": [{"event_id": id(1), "outcome": "lease_lost"}]})).await;
    let (result, told) = running.ended().await;
    result.unwrap();
    assert!(told[1].ends_with("Lost"), "{told:?}");
}

#[tokio::test]
async fn a_report_that_is_too_long_for_the_server_does_not_cost_the_result() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    http.expect("/acknowledge").await.problem(400, json!({"code": "validation_failed", "pointer": "/acks/0/summary"})).await;
    let again = http.expect("/acknowledge").await;
    assert_eq!(again.body, json!({"acks": [{"event_id": id(1), "lease_token": "lease-1", "result": "completed"}]}));
    let answer = acked(&again);
    again.answer(answer).await;
    running.ended().await.0.unwrap();
}

#[tokio::test]
async fn no_more_is_claimed_than_can_be_worked_on_at_once() {
    let mut http = Http::bind().await;
    let options = WorkerOptions { concurrency: NonZeroUsize::new(3).unwrap(), ..quick() };
    let running = Running::start(&http, options, |assignment| async move {
        assignment.lease.lost().cancelled().await;
        Verdict::Abandoned
    });
    http.expect("/subscribe").await.answer(subscribed()).await;
    let first = http.expect("/claim-next").await;
    assert_eq!(first.body["limit"], 3);
    first.answer(claims(&[claim(1, 90_000), claim(2, 90_000)])).await;
    let second = http.expect("/claim-next").await;
    assert_eq!(second.body["limit"], 1);
    second.answer(claims(&[claim(3, 90_000)])).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(http.is_quiet(), "all hands are full");
    drop(running.done);
}

#[tokio::test]
async fn leases_are_kept_while_the_work_goes_on_and_the_work_learns_of_their_loss() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, |assignment| async move {
        assignment.lease.lost().cancelled().await;
        assert_eq!(assignment.lease.loss(), Some(LeaseLoss::Taken));
        Verdict::Abandoned
    });
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 600)])).await;
    let beat = http.expect("POST /v1/inbox/heartbeat").await;
    assert_eq!(beat.body, json!({"leases": [{"event_id": id(1), "lease_token": "lease-1"}]}));
    let lease = json!({
        "event_id": id(1), "outcome": "ok", "visibility_lease_until_utc": "2026-07-12T16:24:12.000Z", "lease_expires_in_ms": 600,
        "attempt_deadline_utc": "2026-07-13T04:24:12.000Z"
    });
    beat.answer(json!({"leases": [lease]})).await;
    http.expect("/heartbeat").await.answer(json!({"leases": [{"event_id": id(1), "outcome": "lease_lost"}]})).await;
    let (result, told) = running.ended().await;
    result.unwrap();
    assert!(told[1].ends_with("Lost"), "{told:?}");
}

#[tokio::test]
async fn clocks_of_two_workers_ten_minutes_apart_change_nothing() {
    // To one the server's clock is ten minutes behind, to the other ten minutes ahead; what counts is how long the lease lasts from now.
    let tell = |server_now: Timestamp, mut lease: Value| {
        lease["visibility_lease_until_utc"] = json!(server_now.plus(Duration::from_millis(600)).to_string());
        lease["attempt_deadline_utc"] = json!(server_now.plus(Duration::from_hours(12)).to_string());
        lease
    };
    let (now, apart) = (SystemClock::new().now(), Duration::from_mins(10));
    for server_now in [now.minus(apart), now.plus(apart)] {
        let mut http = Http::bind().await;
        let begun = std::time::Instant::now();
        let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, |assignment| async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            assert_eq!(assignment.lease.loss(), None, "it is held");
            Verdict::Completed(WorkReport::default())
        });
        http.expect("/subscribe").await.answer(subscribed()).await;
        http.expect("/claim-next").await.answer(claims(&[tell(server_now, claim(1, 600))])).await;
        for _ in 0..2 {
            let beat = http.expect("POST /v1/inbox/heartbeat").await;
            let lease = tell(server_now, json!({"event_id": id(1), "outcome": "ok", "lease_expires_in_ms": 600}));
            beat.answer(json!({"leases": [lease]})).await;
        }
        assert!(begun.elapsed() >= Duration::from_millis(300), "at a third of the lease, and neither at once nor never");
        let ack = loop {
            let request = http.request().await;
            if request.line.ends_with("/acknowledge") {
                break request;
            }
            let lease = tell(server_now, json!({"event_id": id(1), "outcome": "ok", "lease_expires_in_ms": 600}));
            request.answer(json!({"leases": [lease]})).await;
        };
        let answer = acked(&ack);
        ack.answer(answer).await;
        running.ended().await.0.unwrap();
    }
}

#[tokio::test]
async fn draining_takes_back_a_claim_whose_answer_is_on_its_way() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, quick(), complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    let waiting = http.expect("/claim-next").await;
    let (key, body) = (waiting.header("idempotency-key").unwrap().to_owned(), waiting.body.clone());
    running.stop.drain.cancel();
    let again = http.expect("/claim-next").await;
    assert_eq!((again.header("idempotency-key"), &again.body), (Some(key.as_str()), &body), "only the same request is a repeat");
    again.answer(claims(&[claim(1, 90_000)])).await;
    let release = http.expect("POST /v1/inbox/release").await;
    assert_eq!(release.body, json!({"event_id": id(1), "lease_token": "lease-1", "reason": "snooze"}));
    release.problem(409, json!({"code": "lease_lost"})).await;
    running.ended().await.0.unwrap();
    drop(waiting);
}

#[tokio::test]
async fn draining_finishes_what_is_being_worked_on() {
    let mut http = Http::bind().await;
    let (go, gone) = tokio::sync::watch::channel(false);
    let (begin, mut begun) = tokio::sync::watch::channel(false);
    let running = Running::start(&http, quick(), move |_| {
        let (mut gone, begin) = (gone.clone(), begin.clone());
        async move {
            begin.send_replace(true);
            let _ = gone.wait_for(|gone| *gone).await;
            Verdict::Completed(WorkReport::default())
        }
    });
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    within(begun.wait_for(|begun| *begun)).await.unwrap();
    running.stop.drain.cancel();
    go.send_replace(true);
    let ack = http.expect("/acknowledge").await;
    let answer = acked(&ack);
    ack.answer(answer).await;
    running.ended().await.0.unwrap();
}

#[tokio::test]
async fn a_refusal_for_good_ends_the_worker_and_one_that_passes_does_not() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, quick(), complete);
    http.expect("/subscribe").await.problem(503, json!({"code": "unavailable"})).await;
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.problem(429, json!({"code": "rate_limited"})).await;
    http.expect("/claim-next").await.problem(401, json!({"code": "unauthenticated"})).await;
    let (result, _) = running.ended().await;
    assert_eq!(result.unwrap_err().code(), Some(protocol::ProblemCode::Unauthenticated));
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_opened_anew() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.problem(404, json!({"code": "not_found"})).await;
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[])).await;
    running.ended().await.0.unwrap();
}

#[tokio::test]
async fn a_token_that_may_open_no_session_claims_without_one() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, complete);
    http.expect("/subscribe").await.problem(403, json!({"code": "forbidden"})).await;
    let next = http.expect("/claim-next").await;
    assert_eq!(next.body, json!({"limit": 1}));
    next.answer(claims(&[])).await;
    running.ended().await.0.unwrap();
}

#[tokio::test]
async fn a_worker_that_is_to_end_gives_up_on_a_server_that_stays_away() {
    let mut http = Http::bind().await;
    let options = WorkerOptions { once: true, retry_for: Some(Duration::from_millis(50)), ..quick() };
    let running = Running::start(&http, options, complete);
    let answering = async {
        loop {
            http.request().await.problem(503, json!({"code": "unavailable"})).await;
        }
    };
    tokio::select! {
        (result, _) = running.ended() => assert_eq!(result.unwrap_err().code(), Some(protocol::ProblemCode::Unavailable)),
        () = answering => {}
    }
}

#[tokio::test]
async fn a_verdict_that_no_server_takes_is_given_up_when_patience_ends() {
    let mut http = Http::bind().await;
    let options = WorkerOptions { once: true, retry_for: Some(Duration::from_millis(50)), ..quick() };
    let running = Running::start(&http, options, complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    let mut refused = 0;
    let refusing = async {
        loop {
            http.expect("/acknowledge").await.problem(503, json!({"code": "unavailable"})).await;
            refused += 1;
        }
    };
    let (result, told) = tokio::select! {
        ended = running.ended() => ended,
        () = refusing => unreachable!(),
    };
    result.unwrap();
    assert!(refused > 1 && told[1].contains("Untold"), "{refused} {told:?}");
}

#[tokio::test]
async fn a_worker_that_is_to_end_when_nothing_is_left_looks_at_once_when_its_last_item_is_done() {
    let mut http = Http::bind().await;
    let (go, gone) = tokio::sync::watch::channel(false);
    let options = WorkerOptions { concurrency: NonZeroUsize::new(2).unwrap(), idle_timeout: Some(Duration::ZERO), ..quick() };
    let running = Running::start(&http, options, move |_| {
        let mut gone = gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
            Verdict::Completed(WorkReport::default())
        }
    });
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    let busy = http.expect("/claim-next").await;
    assert_eq!(busy.body.get("wait_seconds"), None, "no claim waits, since it would hold up the end");
    busy.answer(claims(&[])).await;
    let begun = tokio::time::Instant::now();
    go.send_replace(true);
    let ack = http.expect("/acknowledge").await;
    let answer = acked(&ack);
    ack.answer(answer).await;
    http.expect("/claim-next").await.answer(claims(&[])).await;
    running.ended().await.0.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_refusal_of_a_claim_that_had_waited_is_asked_about_once_more() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, quick(), complete);
    http.expect("/subscribe").await.answer(subscribed()).await;
    let waiting = http.expect("/claim-next").await;
    let key = waiting.header("idempotency-key").unwrap().to_owned();
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    waiting.problem(403, json!({"code": "forbidden", "reason": "permission_missing"})).await;
    let again = http.expect("/claim-next").await;
    assert_ne!(again.header("idempotency-key"), Some(key.as_str()), "the server would repeat its first answer");
    again.problem(401, json!({"code": "unauthenticated"})).await;
    assert_eq!(running.ended().await.0.unwrap_err().code(), Some(protocol::ProblemCode::Unauthenticated));
}

#[tokio::test]
async fn a_refused_heartbeat_is_told_while_the_work_goes_on() {
    let mut http = Http::bind().await;
    let running = Running::start(&http, WorkerOptions { once: true, ..quick() }, |assignment| async move {
        assignment.lease.lost().cancelled().await;
        Verdict::Abandoned
    });
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 600)])).await;
    let refusing = async {
        loop {
            http.expect("/heartbeat").await.problem(401, json!({"code": "unauthenticated", "detail": "it was revoked"})).await;
        }
    };
    let (result, told) = tokio::select! {
        ended = running.ended() => ended,
        () = refusing => unreachable!(),
    };
    result.unwrap();
    assert!(told[1].starts_with("unkept it was revoked"), "{told:?}");
    assert!(told.last().unwrap().ends_with("Lost"), "{told:?}");
}

#[tokio::test]
async fn the_head_is_asked_for_with_its_tag_and_not_sent_again() {
    let mut http = Http::bind().await;
    let client = client_of(http.address);
    let recipient = json!({"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"});
    let body = json!({"recipient": recipient, "head_seq": 7, "sync_epoch": EPOCH}).to_string();
    let answering = async {
        let first = http.expect("GET /v1/inbox/head").await;
        assert_eq!(first.header("if-none-match"), None);
        first.respond(200, "application/json", &[("etag", "\"t:a:7:e\"")], &body).await;
        let second = http.expect("GET /v1/inbox/head").await;
        assert_eq!(second.header("if-none-match"), Some("\"t:a:7:e\""));
        second.respond(304, "application/json", &[("etag", "\"t:a:7:e\"")], "").await;
    };
    let asking = async {
        let first = client.inbox_head(None).await.unwrap().unwrap();
        assert_eq!(first.head.head_seq.get(), 7);
        assert_eq!(client.inbox_head(first.etag.as_deref()).await.unwrap(), None);
    };
    within(async { tokio::join!(asking, answering) }).await;
}

fn ring(head: u64) -> String {
    let signal = json!({
        "signal_type": "inbox.updated", "tenant_id": "default", "recipient_id": "alpha", "head_seq": head, "approximate_unacked": 1,
        "delivery_id": id(head), "sent_at_utc": "2026-07-12T16:22:04Z"
    });
    format!("id: {head}\nevent: inbox.updated\ndata: {signal}\n\n")
}

async fn rung(signals: &mut doorstep_client::Signals) -> u64 {
    loop {
        if let Ring::Signal { signal, .. } = within(signals.next()).await.unwrap() {
            return signal.head_seq.get();
        }
    }
}

fn quick_signals() -> SignalOptions {
    SignalOptions { backoff: quick().backoff, ..SignalOptions::default() }
}

#[tokio::test]
async fn signals_come_over_a_session_and_go_on_after_the_last_one() {
    let mut http = Http::bind().await;
    let mut signals = client_of(http.address).signals(quick_signals());
    let playing = async {
        http.expect("/subscribe").await.answer(subscribed()).await;
        let stream = http.expect("GET /v1/streams/sse?session_id=sess_1").await;
        assert_eq!(stream.header("last-event-id"), None);
        assert_eq!(stream.header("accept"), Some("text/event-stream"), "{}", stream.head);
        let mut stream = stream.begin("text/event-stream").await;
        stream.say(": heartbeat\n\n").await;
        stream.say(&ring(7)).await;
        drop(stream);
        let stream = http.expect("/v1/streams/sse").await;
        assert_eq!(stream.header("last-event-id"), Some("7"));
        let mut stream = stream.begin("text/event-stream").await;
        stream.say(&ring(8)).await;
        stream
    };
    let listening = async { (rung(&mut signals).await, rung(&mut signals).await) };
    let (heads, _stream) = within(Box::pin(async { tokio::join!(listening, playing) })).await;
    assert_eq!(heads, (7, 8));
}

#[tokio::test]
async fn a_silent_stream_counts_as_lost_and_a_forgotten_session_is_opened_anew() {
    let mut http = Http::bind().await;
    let mut signals = client_of(http.address).signals(SignalOptions { silence: Duration::from_millis(100), ..quick_signals() });
    let playing = async {
        http.expect("/subscribe").await.answer(subscribed()).await;
        let silent = http.expect("/v1/streams/sse").await.begin("text/event-stream").await;
        http.expect("/v1/streams/sse").await.problem(404, json!({"code": "not_found"})).await;
        http.expect("/subscribe").await.answer(subscribed()).await;
        let mut stream = http.expect("/v1/streams/sse").await.begin("text/event-stream").await;
        stream.say(&ring(9)).await;
        (silent, stream)
    };
    let (head, _streams) = within(Box::pin(async { tokio::join!(rung(&mut signals), playing) })).await;
    assert_eq!(head, 9);
}

#[tokio::test]
async fn a_stream_that_is_refused_for_good_ends() {
    let mut http = Http::bind().await;
    let mut signals = client_of(http.address).signals(quick_signals());
    let (error, ()) = tokio::join!(signals.next(), async { http.request().await.problem(403, json!({"code": "forbidden"})).await });
    assert_eq!(error.unwrap_err().code(), Some(protocol::ProblemCode::Forbidden));
}
