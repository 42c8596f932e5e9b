//! Receivers that are told what to answer, and remember what they were sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hooks::{HookUrl, OutboundAnswer, OutboundClient, OutboundError, OutboundRequest, UrlRefusal};
use ring::hmac;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::memory::TestClock;
use domain::{Clock, Timestamp};

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Answer(u16),
    AnswerLater(Duration, u16),
    AskToWait(u16, &'static str),
    Fail(OutboundError),
    Hang,
    /// Answers challenges with this text.
    Say(String),
    /// Answers challenges as the holder of this secret does.
    Prove(Vec<u8>),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) at: Timestamp,
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("header {name} in {:?}", self.headers))
    }

    pub(crate) fn id(&self) -> &str {
        self.headers.get("webhook-id").or(self.headers.get("matm-delivery-id")).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether one of the signatures is this secret's, by Standard Webhooks.
    pub(crate) fn is_signed_by(&self, secret: &[u8]) -> bool {
        let signed = [self.header("webhook-id").as_bytes(), b".", self.header("webhook-timestamp").as_bytes(), b".", &self.body].concat();
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &signed);
        let expected = format!("v1,{}", STANDARD.encode(tag));
        self.header("webhook-signature").split(' ').any(|signature| signature == expected)
    }

    pub(crate) fn signatures(&self) -> usize {
        self.header("webhook-signature").split(' ').count()
    }
}

pub(crate) struct Receivers {
    clock: std::sync::Arc<TestClock>,
    does: Mutex<BTreeMap<String, VecDeque<Does>>>,
    got: Mutex<Vec<Got>>,
    pub(crate) refused: Mutex<BTreeSet<String>>,
    open: Mutex<BTreeMap<String, usize>>,
    /// The most requests that a host had at the same time.
    pub(crate) most_open: Mutex<BTreeMap<String, usize>>,
}

impl Receivers {
    pub(crate) fn new(clock: std::sync::Arc<TestClock>) -> Self {
        let (does, got, refused, open, most_open) =
            (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        Self { clock, does, got, refused, open, most_open }
    }

    /// What the host does with one request after the other; the last is repeated. Hosts that nobody told anything answer 204.
    pub(crate) fn does(&self, host: &str, does: impl IntoIterator<Item = Does>) {
        self.does.lock().unwrap().insert(host.to_owned(), does.into_iter().collect());
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn got_by(&self, host: &str) -> Vec<Got> {
        self.got().into_iter().filter(|got| got.host == host).collect()
    }

    fn next(&self, host: &str) -> Does {
        let mut does = self.does.lock().unwrap();
        match does.get_mut(host) {
            Some(does) if does.len() > 1 => does.pop_front().unwrap(),
            Some(does) => does.front().cloned().unwrap_or(Does::Answer(204)),
            None => Does::Answer(204),
        }
    }
}

/// Counts a request for as long as it is open, also when it is dropped.
struct Open<'r>(&'r Receivers, String);

impl<'r> Open<'r> {
    fn new(receivers: &'r Receivers, host: &str) -> Self {
        let mut open = receivers.open.lock().unwrap();
        let count = open.entry(host.to_owned()).or_insert(0);
        *count += 1;
        let mut most = receivers.most_open.lock().unwrap();
        let most = most.entry(host.to_owned()).or_insert(0);
        *most = (*most).max(*count);
        Self(receivers, host.to_owned())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

#[async_trait]
impl OutboundClient for Receivers {
    async fn check(&self, url: &HookUrl) -> Result<(), UrlRefusal> {
        if self.refused.lock().unwrap().contains(url.host()) { Err(UrlRefusal::Network) } else { Ok(()) }
    }

    async fn post(&self, request: OutboundRequest) -> Result<OutboundAnswer, OutboundError> {
        let host = request.url.host().to_owned();
        if let Err(refusal) = self.check(&request.url).await {
            return Err(OutboundError::Refused(refusal));
        }
        let _open = Open::new(self, &host);
        let mut headers = BTreeMap::new();
        for (name, value) in &request.headers {
            assert!(headers.insert((*name).to_owned(), value.clone()).is_none(), "{name} twice");
        }
        let got =
            Got { at: self.clock.now(), url: request.url.reveal().to_owned(), host: host.clone(), headers, body: request.body.clone() };
        self.got.lock().unwrap().push(got);
        assert!(request.timeout <= Duration::from_secs(5) && request.answer_max <= 4_096, "bounded");
        let answer = |status, body: String| Ok(OutboundAnswer { status, retry_after: None, body: Bytes::from(body) });
        // A round trip takes time.
        sleep(Duration::from_millis(1)).await;
        match self.next(&host) {
            Does::Answer(status) => answer(status, String::new()),
            Does::AnswerLater(pause, status) => {
                sleep(pause).await;
                answer(status, String::new())
            }
            Does::AskToWait(status, after) => Ok(OutboundAnswer { status, retry_after: Some(after.to_owned()), body: Bytes::new() }),
            Does::Fail(error) => Err(error),
            Does::Hang => std::future::pending().await,
            Does::Say(response) => answer(200, json!({ "response": response }).to_string()),
            Does::Prove(secret) => {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                answer(
                    200,
                    if body["type"] == "callback.challenge" {
                        json!({ "response": prove(&secret, &body) }).to_string()
                    } else {
                        String::new()
                    },
                )
            }
        }
    }
}

/// What a receiver that shares the secret answers to a challenge.
pub(crate) fn prove(secret: &[u8], challenge: &Value) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), challenge_text(challenge).as_bytes());
    STANDARD.encode(tag)
}

/// What is to be signed: `delivery_id.nonce.challenge`.
pub(crate) fn challenge_text(challenge: &Value) -> String {
    ["delivery_id", "nonce", "challenge"].map(|member| challenge[member].as_str().unwrap()).join(".")
}

/// Waits for a condition, in the tests' own time.
pub(crate) async fn until(within: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() <= within, "not within {within:?}: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}
