//! `doorstep listen` on a real socket.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde_json::{Value, json};
use testkit::{Answer, Http};

use crate::support::{Running, alone, start, within};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

struct Listening {
    http: Http,
    running: Running,
    directory: tempfile::TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the receiver's clock is the system's")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn hmac_of(secret: &str, message: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), message.as_bytes()))
}

impl Listening {
    async fn start(arguments: impl Fn(&Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("secret"), format!("# the hook's\n{SECRET}\n")).unwrap();
        let secret = directory.path().join("secret").display().to_string();
        let mut line = vec!["listen".to_owned(), "--listen".to_owned(), "127.0.0.1:0".to_owned(), "--secret-file".to_owned(), secret];
        line.extend(arguments(directory.path()));
        let line: Vec<_> = line.iter().map(String::as_str).collect();
        let running = start(SocketAddr::from(([127, 0, 0, 1], 1)), &line, std::io::empty());
        let url = within(async {
            loop {
                if let Some(url) =
                    running.err.text().lines().find_map(|line| line.strip_prefix("doorstep: listening on ").map(str::to_owned))
                {
                    break url;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let http = Http::anonymous(&url.await);
        Self { http, running, directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn ring_signed(&self, secret: &str, id: &str, body: &Value) -> Answer {
        let (at, body) = (now().to_string(), body.to_string());
        let signature = format!("v1,{}", hmac_of(secret, &format!("{id}.{at}.{body}")));
        let headers = [("webhook-id", id), ("webhook-timestamp", at.as_str()), ("webhook-signature", signature.as_str())];
        within(self.http.call("POST", "/hook", &headers, body.clone())).await
    }

    async fn ring(&self, id: &str) -> u16 {
        self.ring_signed(SECRET, id, &todo(id)).await.status
    }
}

fn todo(id: &str) -> Value {
    json!({"type": "todo.ready", "reason": "created", "todo_id": format!("event of {id}"), "queue": "mail", "summary": "s"})
}

async fn appears(path: &Path) {
    within(async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_verified_ring_is_printed_once_however_often_it_comes() {
    let listening = Listening::start(|_| vec!["--limit".to_owned(), "2".to_owned()]).await;
    assert_eq!(listening.ring("msg_1").await, 202);
    assert_eq!(listening.ring("msg_1").await, 202);
    assert_eq!(listening.ring("msg_2").await, 202);
    let ended = listening.running.ended().await;
    assert_eq!(ended.code, 0, "{}", ended.err.text());
    assert_eq!(ended.out.values(), [todo("msg_1"), todo("msg_2")]);
}

#[tokio::test]
async fn what_is_not_verified_is_refused_and_starts_nothing() {
    let listening = Listening::start(|_| vec!["--limit".to_owned(), "1".to_owned()]).await;
    assert_eq!(listening.ring_signed(OTHER, "msg_1", &todo("x")).await.status, 401);
    let unsigned = listening.http.post("/hook", &todo("x")).await;
    assert_eq!((unsigned.status, unsigned.body.len()), (401, 0), "whoever it is learns nothing");
    assert_eq!(listening.http.get("/hook").await.status, 405);
    assert_eq!(listening.ring("msg_2").await, 202);
    let ended = listening.running.ended().await;
    assert_eq!(ended.out.values(), [todo("msg_2")]);
    assert!(ended.err.text().contains("refused a request"), "{}", ended.err.text());
}

#[tokio::test]
async fn the_answer_comes_before_the_command_ends_and_rings_meanwhile_make_one_further_run() {
    let listening = Listening::start(|directory| {
        let at = directory.display();
        let command = format!(
            "cat >> {at}/input; echo \"$DOORSTEP_RING_ID $DOORSTEP_RING_TYPE $DOORSTEP_RING_REASON $DOORSTEP_RING_QUEUE $DOORSTEP_RING_EVENT\" >> {at}/runs; \
             while ! test -e {at}/go; do sleep 0.01; done"
        );
        vec!["--exec".to_owned(), command, "--limit".to_owned(), "4".to_owned()]
    })
    .await;
    assert_eq!(listening.ring("msg_1").await, 202);
    appears(&listening.file("runs")).await;
    for id in ["msg_2", "msg_3", "msg_4"] {
        assert_eq!(listening.ring(id).await, 202);
    }
    std::fs::write(listening.file("go"), "").unwrap();
    let ended = listening.running.ended().await;
    assert_eq!(ended.code, 0, "{}", ended.err.text());
    let runs = std::fs::read_to_string(listening.directory.path().join("runs")).unwrap();
    assert_eq!(runs, "msg_1 todo.ready created mail event of msg_1\nmsg_4 todo.ready created mail event of msg_4\n");
    let input = std::fs::read_to_string(listening.directory.path().join("input")).unwrap();
    assert_eq!(input.lines().count(), 2);
    assert_eq!(serde_json::from_str::<Value>(input.lines().next().unwrap()).unwrap(), todo("msg_1"));
}

#[tokio::test]
async fn a_command_that_fails_is_told_and_the_next_ring_runs_it_again() {
    let listening = Listening::start(|_| ["--exec", "exit 7", "--limit", "2"].map(str::to_owned).to_vec()).await;
    assert_eq!(listening.ring("msg_1").await, 202);
    within(async {
        while !listening.running.err.text().contains("exit code 7") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(listening.ring("msg_2").await, 202);
    assert_eq!(listening.running.ended().await.err.text().matches("exit code 7").count(), 2);
}

#[tokio::test]
async fn a_challenge_is_answered_and_is_no_ring() {
    let listening = Listening::start(|_| vec!["--limit".to_owned(), "1".to_owned()]).await;
    let challenge = json!({"type": "callback.challenge", "delivery_id": "msg_1", "nonce": "n", "challenge": "c", "expires_at_utc": "2026-07-12T16:35:00.000Z"});
    let answer = listening.ring_signed(SECRET, "msg_1", &challenge).await;
    assert_eq!(answer.expect(200), json!({"response": hmac_of(SECRET, "msg_1.n.c")}));
    let unproven = listening.ring_signed(OTHER, "msg_2", &challenge).await;
    assert_eq!((unproven.status, unproven.body.len()), (401, 0), "nobody else gets proofs");
    assert_eq!(listening.ring("msg_3").await, 202);
    assert_eq!(listening.running.ended().await.out.values(), [todo("msg_3")]);
}

#[tokio::test]
async fn a_secret_that_was_rotated_in_the_file_counts_at_once() {
    let listening = Listening::start(|_| vec!["--limit".to_owned(), "2".to_owned()]).await;
    assert_eq!(listening.ring_signed(OTHER, "msg_1", &todo("msg_1")).await.status, 401);
    std::fs::write(listening.file("secret"), format!("{SECRET}\n{OTHER}\n")).unwrap();
    assert_eq!(listening.ring_signed(OTHER, "msg_1", &todo("msg_1")).await.status, 202);
    assert_eq!(listening.ring("msg_2").await, 202);
    assert_eq!(listening.running.ended().await.code, 0);
}

#[tokio::test]
async fn message_signatures_cover_the_public_url_and_a_replay_is_refused() {
    let public = ["--limit", "2", "--public-url", "https://Agent.example.com/hooks/mine?x=1"];
    let listening = Listening::start(|_| public.map(str::to_owned).to_vec()).await;
    let body = json!({"signal_type": "inbox.updated", "head_seq": 7}).to_string();
    let digest = format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body.as_bytes())));
    let (created, expires) = (now(), now() + 300);
    let input = format!(
        "(\"@method\" \"@authority\" \"@path\" \"content-digest\" \"matm-delivery-id\");created={created};expires={expires};\
         nonce=\"n\";keyid=\"k\";alg=\"hmac-sha256\""
    );
    let base = format!(
        "\"@method\": POST\n\"@authority\": agent.example.com\n\"@path\": /hooks/mine\n\"content-digest\": {digest}\n\
         \"matm-delivery-id\": msg_1\n\"@signature-params\": {input}"
    );
    let (input, signature) = (format!("sig1={input}"), format!("sig1=:{}:", hmac_of(SECRET, &base)));
    let headers = [
        ("content-digest", digest.as_str()),
        ("matm-delivery-id", "msg_1"),
        ("signature-input", input.as_str()),
        ("signature", signature.as_str()),
    ];
    let call = || within(listening.http.call("POST", "/anything", &headers, body.clone()));
    assert_eq!(call().await.status, 202);
    assert_eq!(call().await.status, 401, "the very same request");
    assert_eq!(listening.ring("msg_2").await, 202);
    let ended = listening.running.ended().await;
    assert_eq!(ended.out.values(), [serde_json::from_str(&body).unwrap(), todo("msg_2")]);
    assert!(ended.err.text().contains("replay of msg_1"), "{}", ended.err.text());
}

#[tokio::test]
async fn without_a_usable_secret_nothing_is_listened_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    let path = file.display().to_string();
    for content in [None, Some(""), Some("# nothing\n"), Some("whsec_c2hvcnQ=\n"), Some("hunter2\n")] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let ended = alone(&["listen", "--listen", "127.0.0.1:0", "--secret-file", &path], "").await;
        assert_eq!(ended.code, 2, "{content:?}: {}", ended.err.text());
        assert!(!ended.err.text().contains("hunter2"), "a secret is not shown");
    }
}
