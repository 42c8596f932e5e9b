//! `doorstep work` against a server that says what the tests tell it to, with real commands.

use std::path::Path;

use serde_json::{Value, json};
use testkit::PlayedRequest as Request;

use crate::http::Http;
use crate::inbox::subscribed;
use crate::support::{Ended, Running, id, start, within};

const AT: &str = "2026-07-12T16:22:03.123Z";

/// An item as it was claimed, its lease ending in `lease_ms`.
fn claim(number: u64, lease_ms: u64) -> Value {
    json!({
        "event_id": id(number), "outcome": "ok", "inbox_seq": number, "event_type": "mail.received", "summary": "Sam asks", "queue": "mail",
        "priority": "high", "ack_state": "claimed", "delivery_attempts": 2, "max_attempts": 5, "lease_token": format!("lease-{number}"),
        "visibility_lease_until_utc": AT, "lease_expires_in_ms": lease_ms, "attempt_deadline_utc": "2026-07-13T16:22:03.123Z",
        "created_at_utc": AT, "availability_at_utc": AT, "payload": {"n": number}
    })
}

fn claims(claims: &[Value]) -> Value {
    json!({
        "claims": claims, "empty": claims.is_empty(), "backlog": {"available": 0, "claimed": 0},
        "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"}
    })
}

/// Answers an acknowledgement: what was acknowledged.
async fn ack(request: Request) -> Value {
    assert_eq!(request.line, "POST /v1/inbox/acknowledge");
    let ack = request.body["acks"][0].clone();
    request.answer(json!({"acks": [{"event_id": ack["event_id"], "outcome": "ok", "ack_state": "acked"}]})).await;
    ack
}

fn work(http: &Http, more: &[&str], script: &str) -> Running {
    let arguments: Vec<_> = ["work"].into_iter().chain(more.iter().copied()).chain(["--", "/bin/sh", "-c", script]).collect();
    start(http.address, &arguments, std::io::empty())
}

/// A worker that was given these items.
async fn begun(more: &[&str], script: &str, items: &[Value]) -> (Http, Running) {
    let mut http = Http::bind().await;
    let running = work(&http, more, script);
    http.expect("/v1/agent-sessions/subscribe").await.answer(subscribed()).await;
    http.expect("/v1/inbox/claim-next").await.answer(claims(items)).await;
    (http, running)
}

/// Runs a command for one item: what was acknowledged, and how it ended.
async fn once(more: &[&str], script: &str) -> (Value, Ended) {
    let arguments: Vec<_> = ["--once"].into_iter().chain(more.iter().copied()).collect();
    let (mut http, running) = begun(&arguments, script, &[claim(1, 90_000)]).await;
    let acked = ack(http.request().await).await;
    (acked, running.ended().await)
}

async fn appears(path: &Path) -> String {
    within(async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    })
    .await
}

/// Whether a process of this number runs; one that has ended and that nobody has waited for yet does not.
fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = status.rsplit(')').next().unwrap_or_default().trim().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

async fn ends(pid: &str) {
    within(async {
        while runs(pid) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_command_that_succeeds_completes_its_item_with_the_end_of_its_output() {
    let (acked, ended) = once(&["--json"], "echo first; echo 'it is done'; echo noise >&2").await;
    let expected = json!({"event_id": id(1), "lease_token": "lease-1", "result": "completed", "summary": "first\nit is done"});
    assert_eq!((ended.code, acked), (0, expected), "{}", ended.err.text());
    let line = &ended.out.values()[0];
    assert_eq!((&line["event_id"], &line["outcome"], &line["attempt"]), (&json!(id(1)), &json!("completed"), &json!(2)));
    assert!(ended.err.text().contains("noise") && ended.err.text().contains("it is done"), "what commands write is passed on");
}

#[tokio::test]
async fn the_command_gets_its_item_on_standard_input_and_as_variables() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "cat > {0}/input; printf '%s|' $DOORSTEP_EVENT_ID $DOORSTEP_EVENT_SEQ $DOORSTEP_EVENT_TYPE \"$DOORSTEP_EVENT_SUMMARY\" \
         $DOORSTEP_QUEUE $DOORSTEP_PRIORITY $DOORSTEP_ATTEMPT $DOORSTEP_MAX_ATTEMPTS \"$DOORSTEP_EVENT_KIND\" > {0}/variables",
        directory.path().display()
    );
    let (_, ended) = once(&["--quiet"], &script).await;
    assert_eq!(ended.code, 0, "{}", ended.err.text());
    let input = std::fs::read_to_string(directory.path().join("input")).unwrap();
    assert!(input.ends_with('\n') && input.lines().count() == 1 && !input.contains("lease-1"), "{input}");
    let input: Value = serde_json::from_str(&input).unwrap();
    assert_eq!((&input["event_id"], &input["payload"], &input["queue"]), (&json!(id(1)), &json!({"n": 1}), &json!("mail")));
    let variables = std::fs::read_to_string(directory.path().join("variables")).unwrap();
    assert_eq!(variables, format!("{}|1|mail.received|Sam asks|mail|high|2|5||", id(1)));
}

#[tokio::test]
async fn a_command_that_fails_fails_its_item_with_its_code_and_the_end_of_its_complaints() {
    let (acked, ended) = once(&[], "echo out; echo 'no route' >&2; exit 7").await;
    assert_eq!((ended.code, &acked["result"]), (1, &json!("failed")));
    assert_eq!(acked["summary"], "ended with exit code 7: no route");
    assert!(ended.err.text().contains("1 of 1 items not completed"), "{}", ended.err.text());
    let (acked, _) = once(&[], "kill -9 $$").await;
    assert_eq!(acked["summary"], "was ended by signal 9");
}

#[tokio::test]
async fn exit_code_75_gives_the_item_back_for_later_and_counts_no_attempt() {
    let (mut http, running) = begun(&["--once", "--snooze", "5m"], "exit 75", &[claim(1, 90_000)]).await;
    let release = http.expect("POST /v1/inbox/release").await;
    assert_eq!(release.body, json!({"event_id": id(1), "lease_token": "lease-1", "reason": "snooze", "retry_after_seconds": 300}));
    release.answer(crate::inbox::item("retry_scheduled")).await;
    assert_eq!(running.ended().await.code, 0);
}

#[tokio::test]
async fn with_nothing_to_do_once_ends_silently_with_a_code_of_its_own() {
    let (mut http, running) = begun(&["--once"], "exit 0", &[]).await;
    http.expect("GET /v1/inbox").await.answer(inbox(false, &[])).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.text(), ended.err.text()), (3, String::new(), String::new()));
}

/// An inbox as a whole.
fn inbox(paused: bool, paused_queues: &[&str]) -> Value {
    json!({
        "recipient": {"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"}, "head_seq": 7, "sync_epoch": crate::support::EPOCH,
        "paused": paused, "paused_queues": paused_queues, "presence": {"state": "in"}, "policy": {},
        "backlog": {"available": 3, "claimed": 0, "resting": 0}
    })
}

#[tokio::test]
async fn that_nothing_can_be_claimed_because_of_a_pause_is_said() {
    for (state, queues, said) in [
        (inbox(true, &[]), vec![], "the inbox is paused"),
        (inbox(false, &["mail", "builds"]), vec!["--queue", "mail"], "these queues are paused: mail"),
        (inbox(false, &["builds"]), vec!["--queue", "mail"], ""),
    ] {
        let arguments: Vec<_> = ["--once"].into_iter().chain(queues).collect();
        let (mut http, running) = begun(&arguments, "exit 0", &[]).await;
        http.expect("GET /v1/inbox").await.answer(state).await;
        let ended = running.ended().await;
        assert_eq!(ended.code, 3);
        assert!(ended.err.text().contains(said) && ended.err.text().is_empty() == said.is_empty(), "{}", ended.err.text());
    }
}

#[tokio::test]
async fn a_token_that_is_not_accepted_has_an_exit_code_of_its_own() {
    let mut http = Http::bind().await;
    let running = work(&http, &[], "exit 0");
    http.expect("/subscribe").await.problem(401, json!({"code": "unauthenticated", "detail": "it was revoked"})).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 4);
    assert!(ended.err.text().contains("it was revoked") && ended.err.text().contains("--token-file"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_busy_worker_says_that_its_token_is_revoked_and_stops_its_command_before_the_lease_ends() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!("trap 'echo tidied > {0}/end; exit 1' TERM; while :; do sleep 0.01; done", directory.path().display());
    let (mut http, running) = begun(&["--grace", "30s"], &script, &[claim(1, 3_000)]).await;
    let begun = std::time::Instant::now();
    let revoked = json!({"code": "unauthenticated", "detail": "it was revoked"});
    let refusing = async {
        loop {
            http.request().await.problem(401, revoked.clone()).await;
        }
    };
    let ended = tokio::select! {
        ended = running.ended() => ended,
        () = refusing => unreachable!(),
    };
    assert_eq!(ended.code, 4);
    let told = ended.err.text();
    assert_eq!(told.matches("leases cannot be extended: it was revoked").count(), 1, "{told}");
    assert!(ended.out.text().starts_with("lost"), "{}", ended.out.text());
    assert_eq!(appears(&directory.path().join("end")).await, "tidied\n");
    assert!(begun.elapsed() < std::time::Duration::from_millis(2_900), "after two thirds of the lease: {:?}", begun.elapsed());
}

#[tokio::test]
async fn an_idle_timeout_of_nothing_works_until_nothing_is_left() {
    let (mut http, running) = begun(&["--idle-timeout", "0s"], "exit 0", &[claim(1, 90_000)]).await;
    ack(http.request().await).await;
    http.expect("/claim-next").await.answer(claims(&[claim(2, 90_000)])).await;
    ack(http.request().await).await;
    http.expect("/claim-next").await.answer(claims(&[])).await;
    let ended = running.ended().await;
    assert_eq!((ended.code, ended.out.lines().len()), (0, 2), "{}", ended.err.text());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_and_its_item_has_failed() {
    let (acked, ended) = once(&["--timeout", "200ms", "--grace", "5s"], "echo waiting >&2; sleep 600").await;
    assert_eq!((ended.code, &acked["result"]), (1, &json!("failed")));
    assert_eq!(acked["summary"], "was stopped after 200 ms: waiting");
}

#[tokio::test]
async fn a_lost_lease_ends_the_command_and_all_that_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    // The child does not end when it is asked to, and has a child of its own in the background.
    let script = format!(
        "trap '' TERM; /bin/sh -c 'trap \"\" TERM; echo $$ > {0}/grandchild; while :; do sleep 0.05; done' & echo $$ > {0}/child; \
         while :; do sleep 0.05; done",
        directory.path().display()
    );
    let (mut http, running) = begun(&["--once", "--grace", "300ms"], &script, &[claim(1, 1_500)]).await;
    let (child, grandchild) = (appears(&directory.path().join("child")).await, appears(&directory.path().join("grandchild")).await);
    let beat = http.expect("POST /v1/inbox/heartbeat").await;
    assert!(runs(&child) && runs(&grandchild));
    beat.answer(json!({"leases": [{"event_id": id(1), "outcome": "lease_lost"}]})).await;
    ends(&child).await;
    ends(&grandchild).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 1);
    assert!(ended.out.text().starts_with("lost"), "{}", ended.out.text());
    assert!(http.is_quiet(), "nothing is said about an item of somebody else");
}

#[tokio::test]
async fn a_command_is_asked_to_end_before_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        format!("trap 'echo tidied > {0}/end; exit 1' TERM; echo $$ > {0}/child; while :; do sleep 0.01; done", directory.path().display());
    let (mut http, running) = begun(&["--once", "--grace", "30s"], &script, &[claim(1, 1_500)]).await;
    appears(&directory.path().join("child")).await;
    http.expect("/heartbeat").await.answer(json!({"leases": [{"event_id": id(1), "outcome": "lease_lost"}]})).await;
    running.ended().await;
    assert_eq!(appears(&directory.path().join("end")).await, "tidied\n");
}

#[tokio::test]
async fn what_a_command_leaves_behind_does_not_outlive_it_and_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "/bin/sh -c 'echo $$ > {0}/left; sleep 600' & while ! test -s {0}/left; do sleep 0.01; done; echo done",
        directory.path().display()
    );
    let (acked, ended) = once(&[], &script).await;
    assert_eq!((ended.code, &acked["summary"]), (0, &json!("done")));
    ends(&appears(&directory.path().join("left")).await).await;
}

#[tokio::test]
async fn a_command_that_cannot_be_started_ends_the_worker_and_burns_no_attempt() {
    let mut http = Http::bind().await;
    let running = start(http.address, &["work", "--", "/nowhere/at/all"], std::io::empty());
    http.expect("/subscribe").await.answer(subscribed()).await;
    http.expect("/claim-next").await.answer(claims(&[claim(1, 90_000)])).await;
    // The next claim and the release are on their way together.
    let (mut released, mut claiming) = (false, Vec::new());
    let ended = running.ended();
    tokio::pin!(ended);
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            request = http.request() => match request.line.as_str() {
                "POST /v1/inbox/release" => {
                    assert_eq!(request.body, json!({"event_id": id(1), "lease_token": "lease-1", "reason": "snooze"}));
                    released = true;
                    request.answer(crate::inbox::item("available")).await;
                }
                _ => claiming.push(request),
            }
        }
    };
    assert!(released && ended.code == 2, "{}", ended.err.text());
    assert!(ended.err.text().contains("/nowhere/at/all"), "{}", ended.err.text());
}

#[tokio::test]
async fn output_of_any_size_goes_through_and_only_its_end_is_told() {
    let (acked, ended) = once(&["--quiet"], "head -c 3000000 /dev/zero | tr '\\0' x; echo end").await;
    assert_eq!(ended.code, 0);
    let summary = acked["summary"].as_str().unwrap();
    assert!(summary.len() <= 2_048 && summary.ends_with("xend"), "{}", summary.len());
}

#[tokio::test]
async fn several_commands_run_at_once() {
    let directory = tempfile::tempdir().unwrap();
    // Each waits for the other.
    let script =
        format!("touch {0}/$DOORSTEP_EVENT_SEQ; while ! test -e {0}/1 || ! test -e {0}/2; do sleep 0.01; done", directory.path().display());
    let (mut http, running) = begun(&["--once", "-n", "2"], &script, &[claim(1, 90_000), claim(2, 90_000)]).await;
    for _ in 0..2 {
        ack(http.request().await).await;
    }
    assert_eq!(running.ended().await.code, 0);
}
