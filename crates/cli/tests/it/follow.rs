//! `doorstep follow`, over polls.

use std::path::Path;

use serde_json::{Value, json};
use testkit::PlayedRequest as Request;

use crate::http::{Http, page, state};
use crate::support::{Captured, Closed, EPOCH, Running, start, start_on, within};

/// Plays the server for a follower until it has ended: the pages once, then nothing more. How far was acknowledged, and how it ended.
async fn serve(http: &mut Http, running: Running, pages: Vec<Value>) -> (u64, crate::support::Ended) {
    let mut acked = 0;
    let mut pages = pages.into_iter();
    let mut waiting: Vec<Request> = Vec::new();
    let ended = running.ended();
    tokio::pin!(ended);
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            request = http.request() => {
                if request.line.starts_with("POST") {
                    acked = request.body["seq"].as_u64().unwrap();
                    request.answer(state(acked)).await;
                } else if !request.line.contains("/events?") {
                    request.problem(404, json!({"code": "not_found"})).await;
                } else if let Some(page) = pages.next() {
                    request.answer(page).await;
                } else {
                    // A long poll that nothing comes for.
                    waiting.push(request);
                }
            }
        }
    };
    (acked, ended)
}

fn follow(http: &Http, more: &[&str]) -> Running {
    let arguments: Vec<_> = ["follow", "--poll", "--consumer", "work"].into_iter().chain(more.iter().copied()).collect();
    start(http.address, &arguments, std::io::empty())
}

fn script(directory: &Path, body: &str) -> String {
    let path = directory.join("work.sh");
    std::fs::write(&path, body).unwrap();
    format!("sh {} {}", path.display(), directory.display())
}

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[tokio::test]
async fn events_are_printed_as_they_came_and_acknowledged() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--limit", "3"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2], 2), page(&[5], 6)]).await;
    assert_eq!((ended.code, acked), (0, 6), "{}", ended.err.text());
    let events = ended.out.values();
    assert_eq!(events, [crate::support::event(1), crate::support::event(2), crate::support::event(5)]);
}

#[tokio::test]
async fn no_more_are_taken_than_the_limit() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--limit", "2"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2, 3], 3)]).await;
    assert_eq!((ended.code, acked, ended.out.lines().len()), (0, 2, 2));
}

#[tokio::test]
async fn what_an_earlier_run_was_sent_is_asked_for_at_once_and_no_more_than_the_limit() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--limit", "2"]);
    http.expect("GET /v1/agents/me/consumers/work").await.answer(state(5)).await;
    let first = http.expect("/events?").await;
    assert_eq!((first.query("after").as_deref(), first.query("limit").as_deref()), (Some("5"), Some("2")));
    first.answer(page(&[6, 7], 7)).await;
    let (acked, ended) = serve(&mut http, running, vec![]).await;
    assert_eq!((ended.code, acked), (0, 7), "{}", ended.err.text());
}

#[tokio::test]
async fn what_cannot_be_written_is_not_acknowledged() {
    let mut http = Http::bind().await;
    let running = start_on(http.address, &["follow", "--poll", "-c", "work"], std::io::empty(), Closed, Captured::default());
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2], 2)]).await;
    assert_eq!((ended.code, acked), (1, 0));
    assert_eq!(ended.err.text(), "", "whoever closed the output knows");
}

#[tokio::test]
async fn following_ends_when_nothing_has_come_for_a_while() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--idle-timeout", "100ms"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1], 1)]).await;
    assert_eq!((ended.code, acked, ended.out.lines().len()), (0, 1, 1));
}

#[tokio::test]
async fn the_command_gets_the_event_on_its_input_and_in_its_environment() {
    let mut http = Http::bind().await;
    let directory = tempfile::tempdir().unwrap();
    let command = script(
        directory.path(),
        "cat > $1/input; echo $DOORSTEP_EVENT_ID $DOORSTEP_EVENT_SEQ $DOORSTEP_EVENT_TYPE $DOORSTEP_EVENT_CHANNEL > $1/environment",
    );
    let running = follow(&http, &["--exec", &command, "--limit", "1"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[7], 7)]).await;
    assert_eq!((ended.code, acked, ended.out.text()), (0, 7, String::new()), "{}", ended.err.text());
    assert_eq!(read(directory.path(), "input"), format!("{}\n", crate::support::event(7)));
    assert_eq!(read(directory.path(), "environment"), format!("{} 7 test.happened support/general\n", crate::support::id(7)));
}

#[tokio::test]
async fn a_command_that_fails_stops_and_only_what_came_before_is_acknowledged() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--exec", "test $DOORSTEP_EVENT_SEQ -lt 2 || exit 7"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2, 3], 3)]).await;
    assert_eq!((ended.code, acked), (1, 1));
    let text = ended.err.text();
    assert!(text.contains("ended with exit code 7") && text.contains("(seq 2)"), "{text}");
}

#[tokio::test]
async fn a_command_that_fails_can_be_skipped() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--exec", "test $DOORSTEP_EVENT_SEQ -ne 2", "--on-failure", "skip", "--limit", "3"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2, 3], 3)]).await;
    assert_eq!((ended.code, acked), (0, 3));
    assert!(ended.err.text().contains("skipped"));
}

#[tokio::test]
async fn a_command_that_fails_can_be_retried_until_it_succeeds() {
    let mut http = Http::bind().await;
    let directory = tempfile::tempdir().unwrap();
    let command = script(directory.path(), "echo $DOORSTEP_EVENT_SEQ >> $1/runs; test $(wc -l < $1/runs) -ge 2");
    let running = follow(&http, &["--exec", &command, "--on-failure", "retry", "--limit", "2"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1, 2], 2)]).await;
    assert_eq!((ended.code, acked), (0, 2), "{}", ended.err.text());
    assert_eq!(read(directory.path(), "runs"), "1\n1\n2\n");
}

#[tokio::test]
async fn a_command_that_does_not_read_its_input_only_answers_for_its_exit() {
    let mut http = Http::bind().await;
    let mut large = page(&[1], 1);
    large["events"][0]["payload"] = json!({"filling": "x".repeat(1 << 20)});
    let running = follow(&http, &["--exec", "exit 0", "--limit", "1"]);
    let (acked, ended) = serve(&mut http, running, vec![large]).await;
    assert_eq!((ended.code, acked), (0, 1), "{}", ended.err.text());
}

#[tokio::test]
async fn a_command_that_cannot_be_started_acknowledges_nothing() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--exec", "/nowhere/at/all"]);
    let (acked, ended) = serve(&mut http, running, vec![page(&[1], 1)]).await;
    assert_eq!((ended.code, acked), (1, 0));
}

#[tokio::test]
async fn missed_events_are_told_and_following_goes_on() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--limit", "1"]);
    let gone = json!({"code": "resync_required", "reason": "retention", "head_seq": 90, "floor_seq": 60, "sync_epoch": EPOCH});
    http.expect("GET /v1/agents/me/consumers/work").await.answer(state(80)).await;
    http.expect("/events?").await.problem(410, gone).await;
    let (acked, ended) = serve(&mut http, running, vec![page(&[91], 91)]).await;
    assert_eq!((ended.code, acked), (0, 91));
    assert!(ended.err.text().contains("events were missed (retention): delivery goes on after 90"), "{}", ended.err.text());
}

#[tokio::test]
async fn a_refused_token_ends_with_the_problem() {
    let mut http = Http::bind().await;
    let running = follow(&http, &[]);
    http.request().await.problem(401, json!({"code": "unauthenticated", "detail": "the token has expired"})).await;
    let ended = running.ended().await;
    assert_eq!(ended.code, 4);
    let text = ended.err.text();
    assert!(text.contains("the token has expired [unauthenticated, request r-1]") && text.contains("check the token"), "{text}");
}

#[tokio::test]
async fn a_lost_connection_is_told_once_and_following_goes_on() {
    let mut http = Http::bind().await;
    let running = follow(&http, &["--limit", "1"]);
    for _ in 0..3 {
        drop(within(http.request()).await);
    }
    let (acked, ended) = serve(&mut http, running, vec![page(&[1], 1)]).await;
    assert_eq!((ended.code, acked), (0, 1));
    let text = ended.err.text();
    assert_eq!(text.matches("not connected").count(), 1, "{text}");
}
