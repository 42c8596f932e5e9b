//! What signals do to `doorstep work`. A program of its own: a signal reaches everything in a process.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(dead_code, reason = "not everything that the other tests share is needed here")]

#[path = "it/support.rs"]
mod support;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{EPOCH, Ended, Running, id, start, within};
use testkit::PlayedServer;

const AT: &str = "2026-07-12T16:22:03.123Z";

fn signal(name: &str) {
    let status = std::process::Command::new("/bin/sh").arg("-c").arg(format!("kill -s {name} {}", std::process::id())).status();
    assert!(status.unwrap().success());
}

async fn appears(path: &Path) -> String {
    within(async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    })
    .await
}

/// A worker with a command that is under way until the file `go` is there.
struct Worker {
    http: PlayedServer,
    running: Running,
    directory: tempfile::TempDir,
}

impl Worker {
    async fn begun(more: &[&str]) -> Self {
        let (mut http, directory) = (PlayedServer::bind().await, tempfile::tempdir().unwrap());
        let script = format!("echo $$ > {0}/begun; while ! test -e {0}/go; do sleep 0.01; done; echo done", directory.path().display());
        let arguments: Vec<_> = ["work"].into_iter().chain(more.iter().copied()).chain(["--", "/bin/sh", "-c", &script]).collect();
        let running = start(http.address, &arguments, std::io::empty());
        let recipient = json!({"tenant_id": "default", "recipient_kind": "agent", "recipient_id": "alpha"});
        let session = json!({
            "session_id": "sess_1", "recipient": recipient, "current_head_seq": 7, "sync_epoch": EPOCH, "recommended_transport": "sse",
            "poll_after_cursor_url": "/p", "sse_url": "/s", "websocket_url": "ws://x", "heartbeat_interval_seconds": 30,
            "lease_default_seconds": 120, "retention_days": 30
        });
        http.expect("/subscribe").await.answer(session).await;
        let claim = json!({
            "event_id": id(1), "outcome": "ok", "lease_token": "lease-1", "visibility_lease_until_utc": AT, "lease_expires_in_ms": 90_000,
            "attempt_deadline_utc": "2026-07-13T16:22:03.123Z"
        });
        let claims = json!({"claims": [claim], "empty": false, "backlog": {"available": 0, "claimed": 1}, "recipient": recipient});
        http.expect("/claim-next").await.answer(claims).await;
        Self { http, running, directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Plays the server until the end: what it was told.
    async fn ends(mut self) -> (Vec<(String, Value)>, Ended) {
        let (mut told, ended) = (Vec::new(), self.running.ended());
        tokio::pin!(ended);
        loop {
            tokio::select! {
                ended = &mut ended => return (told, ended),
                request = self.http.request() => {
                    told.push((request.line.clone(), request.body.clone()));
                    match request.line.as_str() {
                        "POST /v1/inbox/acknowledge" => {
                            request.answer(json!({"acks": [{"event_id": id(1), "outcome": "ok", "ack_state": "acked"}]})).await;
                        }
                        // That the lease is lost is as certain an answer as any.
                        _ => request.problem(409, json!({"code": "lease_lost"})).await,
                    }
                }
            }
        }
    }
}

fn runs(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().unwrap_or_default().trim().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// One test for all: each signal would reach the others, too.
#[tokio::test]
async fn the_first_signal_drains_its_timeout_gives_back_and_the_second_ends_at_once() {
    // The first signal: no more is claimed, and the command finishes.
    let worker = Worker::begun(&[]).await;
    appears(&worker.file("begun")).await;
    signal("TERM");
    let go = worker.file("go");
    let (told, ended) = {
        let ending = worker.ends();
        tokio::pin!(ending);
        tokio::select! {
            _ = &mut ending => panic!("the command goes on"),
            () = tokio::time::sleep(std::time::Duration::from_millis(200)) => {}
        }
        std::fs::write(go, "").unwrap();
        ending.await
    };
    assert_eq!(ended.code, 0, "{}", ended.err.text());
    let ack = json!({"acks": [{"event_id": id(1), "lease_token": "lease-1", "result": "completed", "summary": "done"}]});
    assert_eq!(told, [("POST /v1/inbox/acknowledge".to_owned(), ack)]);

    // The timeout: the command is stopped, and its item is given back without counting.
    let released = json!({"event_id": id(1), "lease_token": "lease-1", "reason": "snooze"});
    let worker = Worker::begun(&["--drain-timeout", "100ms"]).await;
    let child = appears(&worker.file("begun")).await;
    signal("INT");
    let (told, ended) = worker.ends().await;
    assert_eq!((ended.code, told), (0, vec![("POST /v1/inbox/release".to_owned(), released.clone())]), "{}", ended.err.text());
    assert!(!runs(&child));

    // The second signal: the same at once.
    let worker = Worker::begun(&[]).await;
    let child = appears(&worker.file("begun")).await;
    // Another one, since two of a kind may arrive as one.
    signal("TERM");
    signal("INT");
    let (told, ended) = worker.ends().await;
    assert_eq!((ended.code, told), (1, vec![("POST /v1/inbox/release".to_owned(), released)]), "{}", ended.err.text());
    assert!(ended.err.text().contains("stopped at once by a second signal"), "{}", ended.err.text());
    assert!(!runs(&child));
}
