//! `doorstep listen`: a small receiver of rings that verifies them, answers at once, and starts a command.
//!
//! Must not know Doorstep's server: it is called, and calls nobody.

mod bell;
mod command;
mod http;
mod keys;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use client::{Arrival, SeenDeliveries, WebhookChallenge, WebhookHeaders, WebhookMessage};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::failure::Failure;
use crate::session::Session;
use crate::signals::{Stop, Urgency, forward};
use bell::{Bell, Ring};
use http::{Answer, Request};
use keys::{Keys, PublicUrl};

pub(crate) use command::VARIABLES;

/// Connections at once; more wait.
const CONNECTIONS: usize = 64;
/// How long a request may take to arrive, and a connection may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// What `doorstep listen` takes.
#[derive(Clone, Debug, Args)]
pub struct ListenArguments {
    /// Where to listen; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// A file with the hook's secret (`whsec_…`); during a rotation with both, each on a line of its own. It is read again when a signature does
    /// not verify.
    #[arg(long, value_name = "FILE", required = true)]
    secret_file: PathBuf,
    /// Run this shell command when it rings, with the ring's JSON on standard input. One at a time: rings meanwhile make it run once more.
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// The URL that is registered, where a reverse proxy changes host or path. Only HTTP Message Signatures cover those.
    #[arg(long, value_name = "URL", value_parser = PublicUrl::parse)]
    public_url: Option<PublicUrl>,
    /// End after this many rings, once their commands have run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Listens until it is told to stop.
pub(crate) async fn run(arguments: ListenArguments, session: &Session) -> Result<(), Failure> {
    let keys = Keys::read(arguments.secret_file)?;
    let listener = TcpListener::bind(arguments.listen).await;
    let listener = listener.map_err(|error| Failure::io(format!("{} cannot be listened on", arguments.listen), &error))?;
    let address = listener.local_addr().map_err(|error| Failure::io("the address cannot be known", &error))?;
    session.note(&format!("listening on http://{address}"));
    let (sender, _) = watch::channel(Urgency::No);
    let mut stop = Stop::asked_by(&sender);
    let (bell, rings) = bell::new();
    let receiver =
        Arc::new(Receiver { keys, public_url: arguments.public_url, seen: SeenDeliveries::default(), bell, notes: session.notes() });
    let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
    let worked = {
        let work = command::work(rings, arguments.exec.as_deref(), arguments.limit, session, stop.clone());
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            () = accept(&listener, &receiver, &tasks, &closing) => Ok(()),
            () = stop.asked(Urgency::Soon) => {
                // Nobody is heard any more; what runs may end.
                closing.cancel();
                drop(listener);
                tokio::select! {
                    result = work => result,
                    () = forward(&sender) => Ok(()),
                }
            }
            () = forward(&sender) => Ok(()),
        }
    };
    closing.cancel();
    tasks.close();
    tasks.wait().await;
    worked
}

async fn accept(listener: &TcpListener, receiver: &Arc<Receiver>, tasks: &TaskTracker, closing: &CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (receiver, closing) = (Arc::clone(receiver), closing.clone());
                tasks.spawn(async move {
                    let _place = place;
                    tokio::select! {
                        () = closing.cancelled() => {}
                        () = receiver.serve(stream) => {}
                    }
                });
            }
            // Too many files are open, for instance.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// What every connection shares.
struct Receiver {
    keys: Keys,
    public_url: Option<PublicUrl>,
    seen: SeenDeliveries,
    bell: Bell,
    notes: crate::session::Notes,
}

impl Receiver {
    async fn serve(&self, mut stream: TcpStream) {
        let mut read_ahead = Vec::new();
        loop {
            let request = tokio::time::timeout(PATIENCE, http::read(&mut stream, &mut read_ahead)).await;
            let (answer, goes_on) = match request {
                Ok(Ok(Some(request))) => (self.answer(&request), request.keep_alive),
                Ok(Err(refusal)) => (refusal, false),
                Ok(Ok(None)) | Err(_) => return,
            };
            let written = tokio::time::timeout(PATIENCE, http::write(&mut stream, &answer, goes_on)).await;
            if !goes_on || !matches!(written, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Judges a request. Whoever cannot prove who they are learns nothing but that.
    fn answer(&self, request: &Request) -> Answer {
        if request.method != "POST" {
            return Answer::status(405);
        }
        let headers: WebhookHeaders<'_> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (authority, path) = match &self.public_url {
            Some(url) => (url.authority.as_str(), url.path.as_str()),
            None => (request.authority.as_str(), request.path.as_str()),
        };
        let message = WebhookMessage { method: &request.method, authority, path, headers: &headers, body: &request.body };
        let delivery = match self.keys.verify(&message) {
            Ok(delivery) => delivery,
            Err(rejection) => {
                self.notes.note(&format!("refused a request: {rejection}"));
                return Answer::status(401);
            }
        };
        match self.seen.note(&delivery) {
            Arrival::Replay => {
                self.notes.note(&format!("refused a replay of {}", delivery.id));
                return Answer::status(401);
            }
            // A challenge is answered each time that it is brought.
            Arrival::First | Arrival::Repeat if let Some(challenge) = WebhookChallenge::read(&request.body) => {
                return Answer::json(challenge.answer(&self.keys.prover()));
            }
            Arrival::Repeat => return Answer::status(202),
            Arrival::First => {}
        }
        if let Ok(body) = std::str::from_utf8(&request.body)
            && self.bell.ring(Ring::new(&delivery.id, body))
        {
            return Answer::status(202);
        }
        // It is going away: the next attempt may find somebody else.
        self.seen.forget(&delivery);
        Answer::status(503)
    }
}
