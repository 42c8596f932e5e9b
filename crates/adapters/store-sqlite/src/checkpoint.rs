//! Moving the write-ahead log into the database, beside the writer.
//!
//! The engine would do it inside a commit: every few thousand events one commit would wait for megabytes to become durable. Here a thread of its
//! own moves most of it while commits go on; what was added meanwhile is little, and the writer moves that between two commits. Then nothing is
//! left to move, and the log begins again at its start.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::StoreOptions;
use crate::connection;
use crate::queue::Queue;
use crate::readers::ReadJob;

/// How often the thread looks for what was added meanwhile, before it leaves the rest to the writer.
const PASSES: usize = 3;
/// So few frames are quickly moved by the writer.
const FEW: usize = 128;
/// How long the writer waits for readers to end, so that the log can begin again at its start: about as long as a few pages take. The further the
/// log has grown, the longer.
const PATIENCE: Duration = Duration::from_millis(10);
/// The most by which patience grows.
const MOST_PATIENT: usize = 10;

/// What the writer and the thread tell each other.
pub(crate) struct Checkpoints {
    /// From so many frames on the log is moved.
    wanted: usize,
    /// How long anything else waits for locks.
    busy_timeout: Duration,
    /// Frames in the log after the last commit.
    frames: AtomicUsize,
    /// The rest is for the writer to move.
    rest: AtomicBool,
    /// With so many frames the writer moves them in any case: readers that follow one another can keep the log from ever being moved whole.
    overdue: AtomicUsize,
    /// Snapshots of this process that stay open for long. While there is one, waiting for it would only keep the commits.
    long_snapshots: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: bool,
    closed: bool,
}

impl Checkpoints {
    pub(crate) fn new(options: &StoreOptions) -> Arc<Self> {
        let wanted = connection::checkpoint_frames(options);
        Arc::new(Self {
            wanted,
            busy_timeout: options.busy_timeout,
            frames: AtomicUsize::new(0),
            rest: AtomicBool::new(false),
            overdue: AtomicUsize::new(wanted.saturating_mul(2)),
            long_snapshots: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Follows the commits of `writer`.
    pub(crate) fn follow(self: &Arc<Self>, writer: &mut Connection) -> rusqlite::Result<()> {
        let checkpoints = Arc::clone(self);
        writer.wal_hook(Some(move |_: &mut _, frames: std::ffi::c_int| {
            checkpoints.committed(usize::try_from(frames).unwrap_or(0));
            Ok(())
        }))
    }

    /// The log has so many frames now. Asks for each further half of what is wanted, not at every commit: a reader with an old snapshot may keep
    /// them from being moved.
    fn committed(&self, frames: usize) {
        let before = self.frames.swap(frames, Ordering::Relaxed);
        let step = self.wanted.div_ceil(2);
        if frames >= self.wanted && (before / step != frames / step || before < self.wanted) {
            self.lock().asked = true;
            self.changed.notify_one();
        }
    }

    /// Between two commits of the writer: moves what is left for it to move, and has the log begin again.
    pub(crate) fn between_commits(&self, writer: &Connection, reads: &Queue<ReadJob>) {
        let frames = self.frames.load(Ordering::Relaxed);
        let asked = self.rest.swap(false, Ordering::Relaxed);
        if !asked && frames < self.overdue.load(Ordering::Relaxed) || self.long_snapshots.load(Ordering::Relaxed) > 0 {
            return;
        }
        // Readers that follow one another would never all have ended.
        reads.pause();
        let begins_again = self.begin_again(writer, PATIENCE * u32::try_from((frames / self.wanted).clamp(1, MOST_PATIENT)).unwrap_or(1));
        reads.resume();
        if let Err(error) = &begins_again {
            tracing::debug!(error = %error, frames, "the write-ahead log did not begin again");
        }
        // Somebody else's old snapshot is waited for once in a while, not at every commit.
        let from = if begins_again.is_ok() { self.wanted } else { frames.max(self.wanted) };
        self.overdue.store(from.saturating_add(self.wanted), Ordering::Relaxed);
    }

    fn begin_again(&self, writer: &Connection, patience: Duration) -> rusqlite::Result<()> {
        writer.busy_timeout(patience)?;
        let begun = writer.wal_checkpoint_v2(None::<&str>, CheckpointMode::RESTART);
        writer.busy_timeout(self.busy_timeout)?;
        begun.map(|_| ())
    }

    /// Says that a snapshot stays open for long, until the answer is dropped.
    pub(crate) fn long_snapshot(self: &Arc<Self>) -> LongSnapshot {
        self.long_snapshots.fetch_add(1, Ordering::Relaxed);
        LongSnapshot(Arc::clone(self))
    }

    /// The thread's life.
    pub(crate) fn run(&self, connection: &Connection) {
        while self.wait() {
            for _ in 0..PASSES {
                let left = checkpoint(connection);
                if left <= FEW {
                    break;
                }
            }
            self.rest.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until it is asked; `false` when the store closes.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        while !state.asked && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.asked = false;
        !state.closed
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A snapshot that stays open for long.
pub(crate) struct LongSnapshot(Arc<Checkpoints>);

impl Drop for LongSnapshot {
    fn drop(&mut self) {
        self.0.long_snapshots.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Before the writer's connection closes: moves everything and empties the log. Connections that close at the same moment may each take another
/// for the last one, and then none of them does.
pub(crate) fn finish(connection: &Connection) {
    if let Err(error) = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE) {
        tracing::debug!(error = %error, "the write-ahead log was not emptied");
    }
}

/// Moves what can be moved without waiting for anybody; answers how many frames are left.
pub(crate) fn checkpoint(connection: &Connection) -> usize {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((frames, moved)) => usize::try_from(frames.saturating_sub(moved)).unwrap_or(0),
        // Somebody else is moving them, or there is no room for them: they are as safe where they are.
        Err(error) => {
            tracing::debug!(error = %error, "the write-ahead log was not moved");
            0
        }
    }
}
