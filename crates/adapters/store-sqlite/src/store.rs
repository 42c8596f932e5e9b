//! The store: opening, the ways to its threads, closing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use authz::AdminTx;
use domain::{Clock, Publication, StoreError, TenantId, Transactions, Unit};
use hooks::HookTx;
use inbox::InboxTx;
use intake::PublishTx;
use rusqlite::InterruptHandle;
use sync::{Append, AppendAnswer, CommitListener};
use tokio::sync::oneshot;

use crate::checkpoint::{Checkpoints, LongSnapshot};
use crate::directory::Directory;
use crate::failure::{Failure, OpenError};
use crate::metrics::StoreMetrics;
use crate::queue::{Bound, Queue, Refused};
use crate::readers::{self, ReadJob, ReadTx};
use crate::tx::WriteTx;
use crate::writer::{AppendJob, Call, Job, Listener, UnitJob, Writer};
use crate::{StoreOptions, connection, startup};

/// Every store port on one SQLite database in a data directory that this process alone uses.
pub struct SqliteStore {
    writes: Arc<Queue<Job>>,
    reads: Arc<Queue<ReadJob>>,
    checkpoints: Arc<Checkpoints>,
    metrics: Arc<StoreMetrics>,
    listener: Arc<Listener>,
    clock: Arc<dyn Clock>,
    options: StoreOptions,
    database: PathBuf,
    threads: Mutex<Threads>,
}

/// What must end before the directory is free.
struct Threads {
    running: Vec<Running>,
    directory: Option<Directory>,
    /// Stops what reads for long.
    interrupts: Vec<InterruptHandle>,
}

struct Running {
    handle: JoinHandle<()>,
    /// Answers, with an error, when the thread is about to end.
    ended: oneshot::Receiver<()>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("database", &self.database).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in the data directory `path`, makes it when there is none, migrates and checks it.
    ///
    /// The check holds each log's head row against its last and lowest row: a store that lost its end is refused, never served shorter.
    ///
    /// # Errors
    /// [`OpenError`], as a sentence for the operator.
    pub fn open(path: impl AsRef<Path>, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Arc<Self>, OpenError> {
        let directory = Directory::claim(path.as_ref())?;
        let database = directory.database();
        let writing = startup::open(&directory, &options, clock.now())?;
        let failed = |error| OpenError::from_sqlite(&database, &error);
        let moving = connection::checkpointer(&database, &options).map_err(failed)?;
        let reading: Vec<_> =
            (0..options.readers.max(1)).map(|_| connection::reader(&database, &options)).collect::<Result<_, _>>().map_err(failed)?;
        let store = Self {
            writes: Arc::new(Queue::new(Bound { entries: options.queue_max, bytes: options.queue_max_bytes })),
            reads: Arc::new(Queue::new(Bound { entries: options.queue_max, bytes: usize::MAX })),
            checkpoints: Checkpoints::new(&options),
            metrics: Arc::default(),
            listener: Arc::default(),
            clock,
            threads: Mutex::new(Threads { running: Vec::new(), directory: Some(directory), interrupts: Vec::new() }),
            options,
            database,
        };
        store.start_writer(writing)?;
        store.start_checkpoints(moving)?;
        for connection in reading {
            store.start_reader(connection)?;
        }
        Ok(Arc::new(store))
    }

    /// From now on `listener` is told of every commit that appended, in commit order and before the publishers are answered.
    pub fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// What the store counts about itself.
    pub fn metrics(&self) -> &StoreMetrics {
        let (units, bytes) = self.writes.waiting();
        self.metrics.waiting(units, bytes);
        &self.metrics
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.database
    }

    /// Refuses new calls, finishes those that wait, and gives the data directory free. Later calls are [`StoreError::Unavailable`].
    pub async fn close(&self) {
        self.refuse();
        let (running, directory) = self.take_threads();
        for thread in running {
            let _ = thread.ended.await;
            join(thread.handle);
        }
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = None;
        drop(directory);
    }

    fn refuse(&self) {
        self.writes.close();
        self.reads.close();
        self.checkpoints.close();
        for handle in self.threads.lock().unwrap_or_else(PoisonError::into_inner).interrupts.drain(..) {
            handle.interrupt();
        }
    }

    fn take_threads(&self) -> (Vec<Running>, Option<Directory>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut threads.running), threads.directory.take())
    }

    fn start_writer(&self, mut connection: rusqlite::Connection) -> Result<(), OpenError> {
        self.checkpoints.follow(&mut connection).map_err(|error| OpenError::from_sqlite(&self.database, &error))?;
        let writer = Writer {
            checkpoints: Arc::clone(&self.checkpoints),
            tx: WriteTx::new(connection, Arc::clone(&self.clock), Arc::clone(&self.metrics)),
            queue: Arc::clone(&self.writes),
            reads: Arc::clone(&self.reads),
            metrics: Arc::clone(&self.metrics),
            listener: Arc::clone(&self.listener),
            bound: Bound { entries: self.options.batch_max.max(1), bytes: self.options.batch_max_bytes },
        };
        self.start("store-writer", move || writer.run())
    }

    fn start_checkpoints(&self, connection: rusqlite::Connection) -> Result<(), OpenError> {
        let checkpoints = Arc::clone(&self.checkpoints);
        self.start("store-checkpoint", move || checkpoints.run(&connection))
    }

    fn start_reader(&self, connection: rusqlite::Connection) -> Result<(), OpenError> {
        let (queue, metrics) = (Arc::clone(&self.reads), Arc::clone(&self.metrics));
        self.start("store-reader", move || readers::run(ReadTx::new(connection, metrics), &queue))
    }

    pub(crate) fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Has [`SqliteStore::close`] stop what `connection` does, rather than wait for its end.
    pub(crate) fn interrupt_on_close(&self, connection: &rusqlite::Connection) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.interrupts.push(connection.get_interrupt_handle());
        if self.writes.is_closed() {
            threads.interrupts.drain(..).for_each(|handle| handle.interrupt());
        }
    }

    pub(crate) fn long_snapshot(&self) -> LongSnapshot {
        self.checkpoints.long_snapshot()
    }

    pub(crate) fn write_queue(&self) -> Arc<Queue<Job>> {
        Arc::clone(&self.writes)
    }

    /// Starts a thread that [`SqliteStore::close`] waits for.
    pub(crate) fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let (sender, ended) = oneshot::channel::<()>();
        let body = move || {
            let _sender = sender;
            work();
        };
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let handle = started.map_err(|error| OpenError::Failed { path: self.database.clone(), reason: error.to_string() })?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads of earlier backups and checks are done with.
        threads.running.retain(|thread| !thread.handle.is_finished());
        threads.running.push(Running { handle, ended });
        Ok(())
    }

    /// Runs `function` on the writer, in a savepoint of its own, and answers after the durable commit. It may run several times.
    pub(crate) async fn write<T, F>(&self, name: &'static str, function: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut WriteTx) -> Result<T, Failure> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Work(Box::new(Call::new(name, function, sender))))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }

    /// Runs `call` on a reader in one snapshot.
    pub(crate) async fn read<T, F>(&self, call: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut ReadTx) -> Result<T, Failure> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job = ReadJob(Box::new(move |tx| _ = sender.send(tx.snapshot(call).map_err(StoreError::from))));
        self.reads.push(job).map_err(|refused| self.refused(refused))?;
        receiver.await.unwrap_or(Err(StoreError::Unavailable))
    }

    fn enqueue(&self, job: Job) -> Result<(), StoreError> {
        self.writes.push(job).map_err(|refused| self.refused(refused))
    }

    fn refused(&self, refused: Refused) -> StoreError {
        match refused {
            Refused::Full => {
                self.metrics.refused();
                StoreError::Overloaded
            }
            Refused::Closed => StoreError::Unavailable,
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.refuse();
        let (running, directory) = self.take_threads();
        let own = std::thread::current().id();
        for thread in running {
            if thread.handle.thread().id() != own {
                join(thread.handle);
            }
        }
        drop(directory);
    }
}

fn join(handle: JoinHandle<()>) {
    if handle.join().is_err() {
        tracing::error!("a thread of the store panicked");
    }
}

#[async_trait]
impl Append for SqliteStore {
    async fn append(&self, tenant: &TenantId, publications: Vec<Publication>) -> Result<AppendAnswer, StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Append(AppendJob::new(tenant.clone(), publications, sender)))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}

#[async_trait]
impl Transactions<dyn AdminTx> for SqliteStore {
    async fn run(&self, name: &'static str, unit: Unit<dyn AdminTx>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Work(Box::new(UnitJob::new(name, unit, sender))))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}

#[async_trait]
impl Transactions<dyn PublishTx> for SqliteStore {
    async fn run(&self, name: &'static str, unit: Unit<dyn PublishTx>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Work(Box::new(UnitJob::new(name, unit, sender))))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}

#[async_trait]
impl Transactions<dyn InboxTx> for SqliteStore {
    async fn run(&self, name: &'static str, unit: Unit<dyn InboxTx>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Work(Box::new(UnitJob::new(name, unit, sender))))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}

#[async_trait]
impl Transactions<dyn HookTx> for SqliteStore {
    async fn run(&self, name: &'static str, unit: Unit<dyn HookTx>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.enqueue(Job::Work(Box::new(UnitJob::new(name, unit, sender))))?;
        receiver.await.unwrap_or(Err(StoreError::InDoubt))
    }
}
