//! A worker: claims what waits, hands it to a function, keeps the lease meanwhile, and brings the verdict to the server.

use std::collections::VecDeque;
use std::future::pending;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use domain::{BoxFuture, QueueName};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::{ItemClaim, Label, Secret};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::LeaseTime;
use super::claims::{Claimed, Claims};
use super::keeper::{KeptLease, LeaseKeeper, LeaseKeeperOptions};
use super::settle::{self, Settled, Verdict};
use crate::{BackoffOptions, Client, ClientError};

/// How a worker works. [`WorkerOptions::default`] has what most need.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Only items of these queues; of all queues when empty.
    pub queues: Vec<QueueName>,
    /// The most items at once.
    pub concurrency: NonZeroUsize,
    /// How long a lease lasts without a heartbeat; the server's default (`inbox.lease_default`) when absent.
    pub lease: Option<Duration>,
    /// How long a claim waits for an item. The server caps what is above its own maximum (`inbox.poll_wait_max`).
    pub wait: Duration,
    /// End after the first claim that found something, when its items are done with.
    pub once: bool,
    /// End when nothing was there to claim for this long, and nothing is being worked on.
    pub idle_timeout: Option<Duration>,
    /// The device that the worker's session names.
    pub device: Option<Label>,
    /// Pauses between attempts while the server cannot be reached.
    pub backoff: BackoffOptions,
    /// Give up when claims have failed for this long, and telling a verdict likewise. A worker that is to stay tries for ever.
    pub retry_for: Option<Duration>,
    /// How leases are kept.
    pub keeper: LeaseKeeperOptions,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            concurrency: NonZeroUsize::MIN,
            lease: None,
            wait: Duration::from_secs(25),
            once: false,
            idle_timeout: None,
            device: None,
            backoff: BackoffOptions::default(),
            retry_for: None,
            keeper: LeaseKeeperOptions::default(),
        }
    }
}

/// An item to work on, and its lease.
#[derive(Debug)]
pub struct Assignment {
    /// The item.
    pub item: ItemClaim,
    /// Its lease: watch [`KeptLease::lost`].
    pub lease: KeptLease,
    pub(super) token: Secret,
}

/// What a worker tells while it runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerNews<'a> {
    /// An item was claimed.
    Claimed(&'a ItemClaim),
    /// The server has answered what became of an item, or never will.
    Settled(&'a ItemClaim, &'a Settled),
    /// A call failed; it is repeated after a pause.
    Waiting {
        /// The pause.
        pause: Duration,
        /// Why, for people.
        cause: String,
    },
    /// A heartbeat failed; it is tried again until the leases end. What is worked on is stopped then.
    Unkept {
        /// Why, for people.
        cause: String,
    },
    /// Calls succeed again.
    Connected,
}

/// How a worker is stopped.
#[derive(Clone, Debug, Default)]
pub struct WorkerStop {
    /// No new claims: what is being worked on is finished.
    pub drain: CancellationToken,
    /// At once: calls are not repeated any more. What the server was not told comes back when its lease ends.
    pub abort: CancellationToken,
}

/// Claims items and has them worked on.
#[derive(Debug)]
pub struct InboxWorker {
    client: Client,
    options: WorkerOptions,
}

impl InboxWorker {
    /// A worker for the agent that the client's token belongs to.
    pub fn new(client: Client, options: WorkerOptions) -> Self {
        Self { client, options }
    }

    /// Works until it is stopped or has nothing more to do. `work` is called for each item, at most `concurrency` at once, and is polled by this
    /// future: what computes for long belongs on a thread. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ClientError`] when the server refuses claims for good. What was being worked on then is finished first.
    pub async fn run<F: Future<Output = Verdict>>(
        self,
        stop: WorkerStop,
        work: impl Fn(Arc<Assignment>) -> F,
        mut news: impl FnMut(WorkerNews<'_>),
    ) -> Result<(), ClientError> {
        let extend_by = self.options.keeper.extend_by.or(self.options.lease);
        let keeper = LeaseKeeper::new(self.client.clone(), LeaseKeeperOptions { extend_by, ..self.options.keeper });
        let mut trouble = keeper.trouble();
        let mut claims = Claims::new(&self.client, &self.options);
        let mut running = FuturesUnordered::new();
        let mut ready: VecDeque<Assignment> = VecDeque::new();
        let (mut failed, mut draining, mut giving_up) = (None, false, None);
        loop {
            while let Some(assignment) = ready.pop_front() {
                news(WorkerNews::Claimed(&assignment.item));
                let (client, options, stop, work) = (&self.client, &self.options, &stop, &work);
                let assignment = Arc::new(assignment);
                running.push(async move {
                    let verdict = work(Arc::clone(&assignment)).await;
                    let settled = settle::settle(client, options, &assignment, verdict, stop).await;
                    (assignment, settled)
                });
            }
            if stop.abort.is_cancelled() && running.is_empty() {
                break;
            }
            let free = self.options.concurrency.get().saturating_sub(running.len());
            let idle = running.is_empty();
            let wants = !stop.drain.is_cancelled() && failed.is_none() && free > 0 && !claims.is_over(idle);
            if !wants && idle && !claims.is_under_way() && giving_up.is_none() {
                break;
            }
            if wants {
                claims.begin(free, idle);
            }
            tokio::select! {
                biased;
                Some((assignment, settled)) = running.next(), if !running.is_empty() => {
                    claims.was_busy();
                    news(WorkerNews::Settled(&assignment.item, &settled));
                }
                () = stop.drain.cancelled(), if !draining => {
                    draining = true;
                    giving_up = claims.give_up();
                }
                () = recovered(&mut giving_up) => giving_up = None,
                Ok(()) = trouble.changed() => news(match trouble.borrow_and_update().clone() {
                    Some(cause) => WorkerNews::Unkept { cause },
                    None => WorkerNews::Connected,
                }),
                claimed = claims.next() => match claimed {
                    Claimed::Items(answer, at) => {
                        if claims.recovered() {
                            news(WorkerNews::Connected);
                        }
                        ready.extend(answer.claims.into_iter().filter_map(|item| assign(&keeper, item, at)));
                    }
                    Claimed::Again { pause, cause } => news(WorkerNews::Waiting { pause, cause }),
                    Claimed::Refused(error) => failed = Some(error),
                    Claimed::Nothing => {}
                },
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

fn assign(keeper: &LeaseKeeper, item: ItemClaim, at: Instant) -> Option<Assignment> {
    let (token, time) = (item.lease_token.clone()?, LeaseTime::of_claim(&item)?);
    let lease = keeper.keep(item.event_id, token.clone(), at, time);
    Some(Assignment { item, lease, token })
}

async fn recovered(giving_up: &mut Option<BoxFuture<'static, ()>>) {
    match giving_up {
        Some(giving_up) => giving_up.await,
        None => pending().await,
    }
}
