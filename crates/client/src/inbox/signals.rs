//! Signals over server-sent events: a stream that connects again by itself.
//!
//! A signal is a hint. Whoever misses one finds the work by claiming or polling all the same.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use domain::{AgentSessionId, Seq};
use protocol::{InboxUpdated, Label, Open, ProblemCode, SubscribeRequest, Transport};
use tokio::time::Instant;

use crate::sse::{Message, Parser};
use crate::{Backoff, BackoffOptions, Client, ClientError, Retry, told};

/// The name of the messages that are signals.
const SIGNAL: &str = "inbox.updated";

/// How signals are received. The default is what most need.
#[derive(Clone, Debug)]
pub struct SignalOptions {
    /// The head that is known: what lies above it is signalled at once. Everything that waits when absent.
    pub last_seen: Option<Seq>,
    /// The device that the session names.
    pub device: Option<Label>,
    /// How long a stream may be silent, heartbeats included, before it counts as lost.
    pub silence: Duration,
    /// Pauses between attempts to connect.
    pub backoff: BackoffOptions,
}

impl Default for SignalOptions {
    fn default() -> Self {
        Self { last_seen: None, device: None, silence: Duration::from_secs(45), backoff: BackoffOptions::default() }
    }
}

/// What comes over a stream of signals.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ring {
    /// The inbox has moved.
    Signal {
        /// What is said.
        signal: Box<InboxUpdated>,
        /// The same as it came: JSON on one line.
        raw: String,
    },
    /// The stream is connected.
    Connected,
    /// The stream was lost or refused; another one is made after a pause.
    Waiting {
        /// The pause.
        pause: Duration,
        /// Why, for people.
        cause: String,
    },
}

/// A stream of signals.
#[derive(Debug)]
pub struct Signals {
    client: Client,
    options: SignalOptions,
    backoff: Backoff,
    session: Option<AgentSessionId>,
    last_id: Option<String>,
    stream: Option<Stream>,
    waiting: VecDeque<Message>,
    not_before: Instant,
}

#[derive(Debug)]
struct Stream {
    response: reqwest::Response,
    parser: Parser,
    since: Instant,
}

impl Signals {
    pub(crate) fn new(client: Client, options: SignalOptions) -> Self {
        let backoff = Backoff::new(options.backoff);
        Self { client, backoff, options, session: None, last_id: None, stream: None, waiting: VecDeque::new(), not_before: Instant::now() }
    }

    /// What comes next. Cancel safe.
    ///
    /// # Errors
    /// [`ClientError`] when the server refuses for good.
    pub async fn next(&mut self) -> Result<Ring, ClientError> {
        loop {
            while let Some(message) = self.waiting.pop_front() {
                if message.id.is_some() {
                    self.last_id.clone_from(&message.id);
                }
                if message.event == SIGNAL {
                    let signal = serde_json::from_str(&message.data).map_err(ClientError::Decode)?;
                    return Ok(Ring::Signal { signal, raw: message.data });
                }
            }
            if self.stream.is_none() {
                tokio::time::sleep_until(self.not_before).await;
                return match self.connect().await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        Ok(Ring::Connected)
                    }
                    Err(error) => self.refused(error),
                };
            }
            let more = tokio::time::timeout(self.options.silence, chunk(&mut self.stream)).await;
            let cause = match more {
                Ok(Ok(Some(bytes))) => {
                    let Some(stream) = &mut self.stream else { continue };
                    let waiting = &mut self.waiting;
                    match stream.parser.take(&bytes, |message| waiting.push_back(message)) {
                        Ok(()) => continue,
                        Err(_) => "the stream carries a message that is too long".to_owned(),
                    }
                }
                Ok(Ok(None)) => "the server has ended the stream".to_owned(),
                Ok(Err(error)) => told(&error.without_url()),
                Err(_) => "the stream is silent".to_owned(),
            };
            if let Some(stream) = self.stream.take() {
                self.backoff.after_connection(stream.since.elapsed());
            }
            return Ok(self.wait(cause, Duration::ZERO));
        }
    }

    async fn connect(&mut self) -> Result<Stream, ClientError> {
        let session = match &self.session {
            Some(session) => session.clone(),
            None => {
                let request = SubscribeRequest {
                    device_id: self.options.device.clone(),
                    supported_transports: Some(vec![Open::Known(Transport::Sse)]),
                    last_seen_seq: self.options.last_seen,
                    ..SubscribeRequest::default()
                };
                let subscribed = self.client.subscribe_session(&request).await?;
                if let (None, Some(seen)) = (&self.last_id, self.options.last_seen) {
                    self.last_id = Some(format!("{}:{seen}", subscribed.sync_epoch));
                }
                self.session.insert(subscribed.session_id).clone()
            }
        };
        let response = self.client.signal_stream(&session, self.last_id.as_deref()).await?;
        Ok(Stream { response, parser: Parser::default(), since: Instant::now() })
    }

    fn refused(&mut self, error: ClientError) -> Result<Ring, ClientError> {
        // The server has forgotten the session; another one costs nothing.
        if error.code() == Some(ProblemCode::NotFound) && self.session.take().is_some() {
            return Ok(self.wait(told(&error), Duration::ZERO));
        }
        if error.retry() == Retry::Never {
            return Err(error);
        }
        let asked = error.retry_after().unwrap_or_default();
        Ok(self.wait(told(&error), asked))
    }

    fn wait(&mut self, cause: String, at_least: Duration) -> Ring {
        let pause = self.backoff.next_pause().max(at_least);
        self.not_before = Instant::now() + pause;
        Ring::Waiting { pause, cause }
    }
}

async fn chunk(stream: &mut Option<Stream>) -> Result<Option<bytes::Bytes>, reqwest::Error> {
    match stream {
        Some(stream) => stream.response.chunk().await,
        None => pending().await,
    }
}
