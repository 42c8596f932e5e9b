//! The hot path of publishing: requests of one tenant that wait share a transaction, so that they never compete for the head row.
//!
//! No timer decides how long a batch gathers: what waits while the previous one commits goes with the next one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Publication, StoreError, TenantId};
use sync::AppendAnswer;
use tokio::sync::oneshot;

use crate::PostgresOptions;
use crate::pool::Pool;
use crate::store::Shared;
use crate::tx;

type Answer = Result<AppendAnswer, StoreError>;

/// What an event weighs beside its body.
const OVERHEAD: usize = 256;

/// A request that waits for its batch.
struct Request {
    publications: Arc<[Publication]>,
    bytes: usize,
    answer: oneshot::Sender<Answer>,
}

impl Request {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.publications.iter().filter_map(|publication| publication.deduplication.as_ref()).map(|own| own.key.as_str())
    }
}

/// What waits for one log. It is there while somebody works on it.
#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    bytes: usize,
}

/// The queues of all logs that are appended to, and the connections that do it.
pub(crate) struct Appenders {
    pool: Pool,
    queues: Mutex<HashMap<TenantId, Queue>>,
}

impl Appenders {
    /// As many logs are appended to at the same time as `pool` has connections.
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, queues: Mutex::default() }
    }

    /// Closes the connections.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// Requests and bytes that wait, of all logs.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.queues().values().fold((0, 0), |(requests, bytes), queue| (requests + queue.requests.len(), bytes + queue.bytes))
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<TenantId, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request at the end of its queue; `true` when nobody works on it yet. One larger than the bound of bytes is taken when nothing else waits.
    fn push(&self, options: &PostgresOptions, tenant: &TenantId, request: Request) -> Result<bool, StoreError> {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(tenant) else {
            queues.insert(tenant.clone(), Queue { bytes: request.bytes, requests: VecDeque::from([request]) });
            return Ok(true);
        };
        let is_heavy = !queue.requests.is_empty() && queue.bytes.saturating_add(request.bytes) > options.queue_max_bytes;
        if is_heavy || queue.requests.len() >= options.queue_max {
            return Err(StoreError::Overloaded);
        }
        queue.bytes += request.bytes;
        queue.requests.push_back(request);
        Ok(false)
    }

    /// Everything that waits for a log; nobody works on it any more.
    fn drain(&self, tenant: &TenantId) -> VecDeque<Request> {
        self.queues().remove(tenant).unwrap_or_default().requests
    }

    /// The next batch of a log; `None`, and the queue is gone, when nothing waits.
    fn take(&self, options: &PostgresOptions, tenant: &TenantId) -> Option<Vec<Request>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(tenant)?;
        let batch = gather(&mut queue.requests, options);
        if batch.is_empty() {
            queues.remove(tenant);
            return None;
        }
        queue.bytes -= batch.iter().map(|request| request.bytes).sum::<usize>();
        Some(batch)
    }
}

/// The first requests, at least one, as far as the bounds allow and no key comes again: a repeat is told from what is stored.
fn gather(waiting: &mut VecDeque<Request>, options: &PostgresOptions) -> Vec<Request> {
    let (mut batch, mut events, mut bytes) = (Vec::new(), 0, 0);
    let mut keys: HashSet<String> = HashSet::new();
    while let Some(next) = waiting.front() {
        events += next.publications.len();
        bytes += next.bytes;
        let is_full = events > options.batch_max || bytes > options.batch_max_bytes;
        if !batch.is_empty() && (is_full || next.keys().any(|key| keys.contains(key))) {
            break;
        }
        keys.extend(next.keys().map(str::to_owned));
        batch.extend(waiting.pop_front());
    }
    batch
}

/// Appends a request to the log of `tenant` and answers after the durable commit.
pub(crate) async fn append(shared: &Arc<Shared>, tenant: &TenantId, publications: Vec<Publication>) -> Answer {
    if shared.cancel.is_cancelled() {
        return Err(StoreError::Unavailable);
    }
    let bytes = publications.iter().map(|publication| publication.body.len() + OVERHEAD).sum();
    let (answer, answered) = oneshot::channel();
    let request = Request { publications: publications.into(), bytes, answer };
    match shared.appenders.push(&shared.options, tenant, request) {
        Ok(true) => drop(shared.tracker.spawn(work(Arc::clone(shared), tenant.clone()))),
        Ok(false) => {}
        Err(refused) => {
            shared.metrics.refused();
            return Err(refused);
        }
    }
    answered.await.unwrap_or(Err(StoreError::InDoubt))
}

/// Commits batch after batch of one log until nothing waits.
async fn work(shared: Arc<Shared>, tenant: TenantId) {
    let mut worker = Worker { shared: &shared, tenant: &tenant, is_done: false };
    while let Some(batch) = shared.appenders.take(&shared.options, &tenant) {
        let requests: Vec<Arc<[Publication]>> = batch.iter().map(|request| Arc::clone(&request.publications)).collect();
        let answers = settle(&shared, &tenant, &requests).await;
        let is_away = answers.iter().all(|answer| matches!(answer, Err(StoreError::Unavailable)));
        for (request, answer) in batch.into_iter().zip(answers) {
            // Who asked may have gone away.
            let _ = request.answer.send(answer);
        }
        // A server that is away must not hold up the end once for each batch.
        if is_away && shared.cancel.is_cancelled() {
            return;
        }
    }
    worker.is_done = true;
}

/// Who works on a queue. When that ends before the queue does, nobody may wait in it for ever, and the next request begins anew.
struct Worker<'a> {
    shared: &'a Shared,
    tenant: &'a TenantId,
    is_done: bool,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        for request in self.shared.appenders.drain(self.tenant) {
            let _ = request.answer.send(Err(StoreError::Unavailable));
        }
    }
}

/// What becomes of each request of a batch. When one of them may be why all failed, halves are tried, down to that one.
async fn settle(shared: &Arc<Shared>, tenant: &TenantId, batch: &[Arc<[Publication]>]) -> Vec<Answer> {
    let mut answers = Vec::with_capacity(batch.len());
    let mut pending = vec![batch];
    while let Some(part) = pending.pop() {
        match commit(shared, tenant, part).await {
            Ok(appended) => answers.extend(appended.into_iter().map(Ok)),
            Err(error) if part.len() > 1 && is_of_one(&error) => {
                let (first, rest) = part.split_at(part.len() / 2);
                pending.extend([rest, first]);
            }
            Err(error) => answers.extend(std::iter::repeat_n(Err(error), part.len())),
        }
    }
    answers
}

/// Whether what went wrong may be the fault of one request of several: of what it holds, not of the log, the server or the moment.
const fn is_of_one(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict(_) | StoreError::Corrupt(_))
}

async fn commit(shared: &Arc<Shared>, tenant: &TenantId, requests: &[Arc<[Publication]>]) -> Result<Vec<AppendAnswer>, StoreError> {
    let append = tx::run_on(shared, &shared.appenders.pool, "append", |tx| {
        let (tenant, requests) = (tenant.clone(), requests.to_vec());
        Box::pin(async move {
            let requests: Vec<&[Publication]> = requests.iter().map(AsRef::as_ref).collect();
            let appended = tx.append_requests(&tenant, &requests).await?;
            tx.set_units(requests.len());
            Ok((appended, tx.log_head(&tenant).await?.seq))
        })
    });
    let (appended, head) = append.await?;
    Ok(appended.into_iter().map(|appended| AppendAnswer { appended, head }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use domain::{Audience, Deduplication, EventId, EventOrigin, EventType, Timestamp};

    fn request(keys: &[&str], bytes: usize) -> Request {
        let publication = |key: &&str| Publication {
            id: EventId::new(uuid::Uuid::nil()),
            event_type: EventType::parse("a.b").unwrap(),
            channel: None,
            audience: Audience::default(),
            origin: EventOrigin::Published,
            created_at: Timestamp::from_micros(0),
            deduplication: (!key.is_empty()).then(|| Deduplication {
                key: domain::DeduplicationKey::parse(key).unwrap(),
                body_hash: [0; 32],
                expires_at: Timestamp::from_micros(1),
            }),
            body: Bytes::new(),
            work: None,
        };
        Request { publications: keys.iter().map(publication).collect(), bytes, answer: oneshot::channel().0 }
    }

    fn options(batch_max: usize, batch_max_bytes: usize) -> PostgresOptions {
        PostgresOptions { batch_max, batch_max_bytes, queue_max: 3, queue_max_bytes: 10, ..PostgresOptions::new("") }
    }

    fn batches(requests: Vec<Request>, options: &PostgresOptions) -> Vec<usize> {
        let mut waiting = VecDeque::from(requests);
        std::iter::from_fn(|| Some(gather(&mut waiting, options).len()).filter(|length| *length > 0)).collect()
    }

    #[test]
    fn a_batch_keeps_its_bounds_and_one_request_above_them_goes_alone() {
        let requests =
            || vec![request(&["", ""], 5), request(&[""], 5), request(&["", "", "", ""], 5), request(&[""], 50), request(&[""], 1)];
        assert_eq!(batches(requests(), &options(3, 100)), [2, 1, 2]);
        assert_eq!(batches(requests(), &options(100, 10)), [2, 1, 1, 1]);
    }

    #[test]
    fn a_key_that_comes_again_waits_for_the_next_batch() {
        let requests = vec![request(&["a", "b"], 1), request(&["c"], 1), request(&["b"], 1), request(&["b"], 1), request(&["d", "d"], 1)];
        assert_eq!(batches(requests, &options(100, 100)), [2, 1, 2]);
    }
}
