//! What signals do to `doorstep follow`. A program of its own: a signal reaches everything in a process.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(dead_code, reason = "not everything that the other tests share is needed here")]

#[path = "it/http.rs"]
mod http;
#[path = "it/support.rs"]
mod support;

use std::path::Path;

use http::{Http, page, state};
use support::{Ended, Running, start, within};

fn signal(name: &str) {
    let status = std::process::Command::new("/bin/sh").arg("-c").arg(format!("kill -s {name} {}", std::process::id())).status();
    assert!(status.unwrap().success());
}

async fn appears(path: &Path) {
    within(async {
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn follow(http: &Http, command: &str) -> Running {
    start(http.address, &["follow", "--poll", "--consumer", "work", "--exec", command], std::io::empty())
}

/// Answers acknowledgements until the end: how far they went.
async fn ends(http: &mut Http, running: Running) -> (u64, Ended) {
    let (mut acked, mut polls) = (0, Vec::new());
    let ended = running.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            ended = &mut ended => return (acked, ended),
            request = http.request() => {
                if request.line.starts_with("POST") {
                    acked = request.body["seq"].as_u64().unwrap();
                    request.answer(state(acked)).await;
                } else {
                    polls.push(request);
                }
            }
        }
    }
}

/// One test for both: each signal would reach the other one, too.
#[tokio::test]
async fn the_first_signal_lets_the_command_finish_and_the_second_kills_it() {
    for (second, code, acked_seq) in [(false, 0, 1), (true, 1, 0)] {
        let mut http = Http::bind().await;
        let directory = tempfile::tempdir().unwrap();
        let (begun, go) = (directory.path().join("begun"), directory.path().join("go"));
        let command = format!("touch {}; while ! test -e {}; do sleep 0.01; done", begun.display(), go.display());
        let running = follow(&http, &command);
        http.expect("GET /v1/agents/me/consumers/work").await.answer(state(0)).await;
        http.expect("/events?").await.answer(page(&[1, 2], 2)).await;
        appears(&begun).await;
        std::fs::remove_file(&begun).unwrap();
        signal("TERM");
        if second {
            signal("INT");
        } else {
            std::fs::write(&go, "").unwrap();
        }
        let (acked, ended) = ends(&mut http, running).await;
        assert_eq!((ended.code, acked), (code, acked_seq), "{}", ended.err.text());
        assert!(!begun.exists(), "the next event is not begun");
        assert_eq!(ended.err.text().contains("killed"), second, "{}", ended.err.text());
    }
}
