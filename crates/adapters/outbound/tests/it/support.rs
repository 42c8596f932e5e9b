//! Resolvers and receivers that tests play.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use doorstep_outbound::{Outbound, Resolver, Trust, Unresolvable};
use hooks::{AllowedNetwork, HookUrl, OutboundAnswer, OutboundClient as _, OutboundError, OutboundRequest, Settings};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// The longest that anything may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// Answers what it was told to, one answer after the other; the last one stays.
#[derive(Debug, Default)]
pub(crate) struct Told {
    answers: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Told {
    pub(crate) fn new(name: &str, answers: &[&[&str]]) -> Arc<Self> {
        let told = Self::default();
        let answers = answers.iter().map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        told.answers.lock().unwrap().insert(name.to_owned(), answers);
        Arc::new(told)
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Resolver for Told {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, Unresolvable> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answers = answers.get_mut(name).ok_or(Unresolvable)?;
        if answers.len() > 1 { answers.pop_front().ok_or(Unresolvable) } else { answers.front().cloned().ok_or(Unresolvable) }
    }
}

/// Never answers.
#[derive(Debug)]
pub(crate) struct Silent;

#[async_trait]
impl Resolver for Silent {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, Unresolvable> {
        std::future::pending().await
    }
}

/// Settings that allow plain http and these entries.
pub(crate) fn open(allowed: &[&str]) -> Settings {
    let allow_networks = allowed.iter().map(|text| AllowedNetwork::parse(text).unwrap()).collect();
    Settings { allow_http: true, allow_networks, ..Settings::default() }
}

pub(crate) fn client(settings: &Settings, resolver: Arc<dyn Resolver>) -> Outbound {
    Outbound::new(settings, &[], resolver, Trust::Only(Vec::new())).unwrap()
}

pub(crate) fn request(url: &str) -> OutboundRequest {
    let headers = vec![("content-type", "application/json".to_owned()), ("webhook-id", "msg_1".to_owned())];
    OutboundRequest {
        url: HookUrl::parse(url).unwrap(),
        headers,
        body: br#"{"type":"todo.ready"}"#.as_slice().into(),
        timeout: Duration::from_secs(5),
        answer_max: 4096,
    }
}

pub(crate) async fn post(client: &Outbound, url: &str) -> Result<OutboundAnswer, OutboundError> {
    within(client.post(request(url))).await
}

/// Fails the test when `future` takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it has to happen within the deadline")
}

/// What a receiver does with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads a request and answers this; then the connection's next.
    Answer(String),
    /// Reads a request, answers this, then this again and again with a pause.
    Drip(&'static str, &'static [u8], Duration),
    /// Takes the connection and says nothing.
    Hang,
    /// Says this without reading, and hangs up.
    Blurt(&'static str),
}

/// A receiver on a real socket.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    tasks: TaskTracker,
}

impl Receiver {
    pub(crate) async fn start(act: Act) -> Self {
        Self::at("127.0.0.1:0", act).await
    }

    pub(crate) async fn at(address: &str, act: Act) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        Self::serve(listener, None, act)
    }

    pub(crate) async fn secure(tls: tokio_rustls::TlsAcceptor, act: Act) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), Some(tls), act)
    }

    fn serve(listener: TcpListener, tls: Option<tokio_rustls::TlsAcceptor>, act: Act) -> Self {
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
            tasks: TaskTracker::new(),
        };
        let (connections, requests) = (Arc::clone(&receiver.connections), Arc::clone(&receiver.requests));
        let tasks = receiver.tasks.clone();
        receiver.tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (act, requests, tls) = (act.clone(), Arc::clone(&requests), tls.clone());
                tasks.spawn(async move {
                    match tls {
                        None => play(stream, act, requests).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                play(stream, act, requests).await;
                            }
                        }
                    }
                });
            }
        });
        receiver
    }

    /// The URL by a name or an address.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/hook?key=k", self.address.port())
    }

    /// The entry of `hooks.allow_networks` that opens it.
    pub(crate) fn entry(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Heads and bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn play(mut stream: impl AsyncRead + AsyncWrite + Unpin, act: Act, requests: Arc<Mutex<Vec<String>>>) {
    match act {
        Act::Answer(text) => {
            while let Some(request) = read(&mut stream).await {
                requests.lock().unwrap().push(request);
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
        Act::Drip(first, then, pause) => {
            let Some(request) = read(&mut stream).await else { return };
            requests.lock().unwrap().push(request);
            let mut said = stream.write_all(first.as_bytes()).await;
            while said.is_ok() {
                tokio::time::sleep(pause).await;
                said = stream.write_all(then).await;
            }
        }
        Act::Hang => std::future::pending().await,
        Act::Blurt(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + std::str::from_utf8(&body).unwrap())
}

/// An answer with this status and body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Act {
    Act::Answer(format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()))
}
