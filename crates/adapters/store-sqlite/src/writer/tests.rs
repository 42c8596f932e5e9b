//! Commits that fail: nobody is told of an event that is not there, and nothing is there twice.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use domain::{Audience, Clock, Event, EventId, EventOrigin, EventType, Publication, StoreError, SyncEpoch, TenantId, Timestamp};
use rusqlite::params;
use sync::{AppendAnswer, CommitListener};
use tempfile::TempDir;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::batch::{BatchFailure, Stage};
use super::{AppendJob, Job, Listener, Writer};
use crate::StoreOptions;
use crate::checkpoint::Checkpoints;
use crate::directory::Directory;
use crate::queue::{Bound, Queue};
use crate::sql::sql;
use crate::startup;
use crate::tx::WriteTx;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<u64>>);

impl CommitListener for Heard {
    fn committed(&self, _: &TenantId, _: SyncEpoch, events: &[Arc<Event>]) {
        self.0.lock().unwrap().extend(events.iter().map(|event| event.seq.get()));
    }
}

/// A writer that is driven by hand, over a database of its own with the tenant `acme`.
struct Bench {
    writer: Writer,
    heard: Arc<Heard>,
    _directory: (TempDir, Directory),
}

impl Bench {
    /// Its database refuses those commits, counted from 1.
    fn new(refused: &'static [usize]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::claim(place.path()).unwrap();
        let options = StoreOptions::default();
        let mut connection = startup::open(&directory, &options, Still.now()).unwrap();
        connection.execute(sql!("authz/create_tenant"), params!["acme", 0]).unwrap();
        connection.query_row(sql!("sync/create_head"), params!["acme", "active", 0, [7_u8; 16]], |_| Ok(())).unwrap();
        let mut commit = 0;
        let hook = move || {
            commit += 1;
            refused.contains(&commit)
        };
        connection.commit_hook(Some(hook)).unwrap();
        let heard = Arc::<Heard>::default();
        let bound = Bound { entries: 100, bytes: 1 << 20 };
        let writer = Writer {
            tx: WriteTx::new(connection, Arc::new(Still), Arc::default()),
            queue: Arc::new(Queue::new(bound)),
            reads: Arc::new(Queue::new(bound)),
            checkpoints: Checkpoints::new(&options),
            metrics: Arc::default(),
            listener: Arc::new(Listener::new(Some(heard.clone()))),
            bound,
        };
        Self { writer, heard, _directory: (place, directory) }
    }

    /// Processes one batch of `count` requests of two events each and answers what their publishers were told: their first `seq`.
    fn process(&mut self, count: usize) -> Vec<Result<u64, StoreError>> {
        let (mut batch, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (sender, receiver) = oneshot::channel();
            batch.push(Job::Append(AppendJob::new(TenantId::parse("acme").unwrap(), vec![publication(), publication()], sender)));
            answers.push(receiver);
        }
        self.writer.process(&mut batch);
        answers.into_iter().map(|mut answer| answer.try_recv().unwrap().map(|answer| first_seq(&answer))).collect()
    }

    fn stored(&self) -> Vec<i64> {
        let connection = self.writer.tx.connection();
        let mut statement = connection.prepare("SELECT position & 0xffff FROM event_log ORDER BY position").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn head(&self) -> i64 {
        self.writer.tx.connection().query_row("SELECT head FROM log_heads", [], |row| row.get(0)).unwrap()
    }
}

fn publication() -> Publication {
    Publication {
        id: EventId::new(Uuid::nil()),
        event_type: EventType::parse("a").unwrap(),
        channel: None,
        audience: Audience::default(),
        origin: EventOrigin::Published,
        created_at: Timestamp::from_micros(0),
        body: Bytes::from_static(b"\"id\":\"x\"}"),
        deduplication: None,
        work: None,
    }
}

fn first_seq(answer: &AppendAnswer) -> u64 {
    match answer.appended[0] {
        domain::Appended::New { seq, .. } => seq.get(),
        _ => 0,
    }
}

#[test]
fn a_refused_commit_is_made_good_one_by_one() {
    let mut bench = Bench::new(&[1]);
    assert_eq!(bench.process(3), [Ok(1), Ok(3), Ok(5)]);
    assert_eq!((bench.stored(), bench.head()), (vec![1, 2, 3, 4, 5, 6], 6));
    assert_eq!(*bench.heard.0.lock().unwrap(), [1, 2, 3, 4, 5, 6], "each was told once");
    let counted = bench.writer.metrics.snapshot();
    assert_eq!((counted.failed_commits, counted.commits, counted.units, counted.events), (1, 3, 3, 6));
}

#[test]
fn a_commit_that_fails_again_is_answered_as_failed_and_leaves_nothing() {
    let mut bench = Bench::new(&[1, 3]);
    let answers = bench.process(3);
    assert!(matches!(answers[..], [Ok(1), Err(_), Ok(3)]), "{answers:?}");
    assert_eq!((bench.stored(), bench.head()), (vec![1, 2, 3, 4], 4));
    assert_eq!(*bench.heard.0.lock().unwrap(), [1, 2, 3, 4]);
    assert_eq!(bench.process(1), [Ok(5)], "and the writer goes on");
}

#[test]
fn only_a_commit_that_failed_on_its_way_to_the_medium_is_in_doubt() {
    let failure = |stage, error| BatchFailure { error, stage };
    assert!(failure(Stage::Commit, StoreError::Unavailable).in_doubt());
    for certain in [
        failure(Stage::Commit, StoreError::Full),
        failure(Stage::Commit, StoreError::Transient),
        failure(Stage::Jobs, StoreError::Unavailable),
        failure(Stage::Begin, StoreError::Unavailable),
    ] {
        assert!(!certain.in_doubt(), "{certain:?}");
    }
}
