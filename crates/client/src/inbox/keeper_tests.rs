//! Keepers against a server that says what the tests tell it to, in time that only passes where nothing else happens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{BoxFuture, EventId};
use protocol::{Problem, ProblemCode, Secret};
use tokio::time::Instant;

use super::super::lease::{Beat, LeaseLoss, LeaseTime};
use super::{Heart, KeptLease, LeaseKeeper, LeaseKeeperOptions};
use crate::{BackoffOptions, ClientError};

/// What a heartbeat is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Extended,
    Lost,
    Overloaded,
    Silence,
}

/// A server: what it was asked and when, and what it answers from some time on.
#[derive(Clone)]
struct Server {
    start: Instant,
    asked: Arc<Mutex<Vec<(u64, usize)>>>,
    answers: Arc<dyn Fn(u64) -> Answer + Send + Sync>,
    time: LeaseTime,
}

impl Server {
    fn new(time: LeaseTime, answers: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Self {
        Self { start: Instant::now(), asked: Arc::default(), answers: Arc::new(answers), time }
    }

    /// When it was asked, in seconds, and about how many leases.
    fn asked(&self) -> Vec<(u64, usize)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Heart for Server {
    fn beat(&self, leases: Vec<(EventId, Secret)>) -> BoxFuture<'static, Result<Vec<Beat>, ClientError>> {
        let passed = self.start.elapsed();
        self.asked.lock().unwrap().push((passed.as_secs(), leases.len()));
        let attempt_ends_in = self.time.attempt_ends_in.saturating_sub(passed);
        let time = LeaseTime { lasts: self.time.lasts.min(attempt_ends_in), attempt_ends_in };
        let answer = (self.answers)(passed.as_secs());
        Box::pin(async move {
            match answer {
                Answer::Extended => Ok(vec![Beat::Extended(time); leases.len()]),
                Answer::Lost => Ok(vec![Beat::Lost; leases.len()]),
                Answer::Overloaded => {
                    let problem = Box::new(Problem::new(ProblemCode::Overloaded, "x", "r"));
                    Err(ClientError::Problem { problem, retry_after: None })
                }
                Answer::Silence => std::future::pending().await,
            }
        })
    }
}

fn time(lasts: u64, attempt: u64) -> LeaseTime {
    LeaseTime { lasts: Duration::from_secs(lasts), attempt_ends_in: Duration::from_secs(attempt) }
}

fn options() -> LeaseKeeperOptions {
    let backoff = BackoffOptions { base: Duration::from_secs(1), cap: Duration::from_secs(1), stable_after: Duration::from_secs(1) };
    LeaseKeeperOptions { backoff, ..LeaseKeeperOptions::default() }
}

fn keep(keeper: &LeaseKeeper, time: LeaseTime) -> KeptLease {
    let event = "0197f0ab-44f7-7f1a-b0ef-000000000001".parse().unwrap();
    keeper.keep(event, Secret::new("lease".to_owned()), Instant::now(), time)
}

/// How many seconds passed until the lease was lost.
async fn lost_after(lease: &KeptLease) -> u64 {
    let start = Instant::now();
    tokio::time::timeout(Duration::from_hours(24), lease.lost().cancelled()).await.expect("it is lost within a day");
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn leases_are_extended_at_a_third_of_their_time_all_in_one_call() {
    let server = Server::new(time(120, 86_400), |_| Answer::Extended);
    let keeper = LeaseKeeper::start(server.clone(), options());
    let leases: Vec<_> = (0..3).map(|_| keep(&keeper, time(120, 86_400))).collect();
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(server.asked(), [(40, 3), (80, 3), (120, 3)]);
    assert!(leases.iter().all(|lease| !lease.lost().is_cancelled()));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_let_go_is_not_extended_any_more() {
    let server = Server::new(time(120, 86_400), |_| Answer::Extended);
    let keeper = LeaseKeeper::start(server.clone(), options());
    let (first, second) = (keep(&keeper, time(120, 86_400)), keep(&keeper, time(120, 86_400)));
    drop(first);
    tokio::time::sleep(Duration::from_secs(50)).await;
    drop(second);
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(server.asked(), [(40, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_loses_nothing() {
    let server = Server::new(time(120, 86_400), |now| if (30..115).contains(&now) { Answer::Overloaded } else { Answer::Extended });
    let keeper = LeaseKeeper::start(server.clone(), options());
    let lease = keep(&keeper, time(120, 86_400));
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!lease.lost().is_cancelled());
    assert!(server.asked().len() > 20, "it is tried again and again");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_at_its_own_end_when_no_heartbeat_arrives() {
    let server = Server::new(time(120, 86_400), |_| Answer::Overloaded);
    let keeper = LeaseKeeper::start(server, options());
    let lease = keep(&keeper, time(120, 86_400));
    assert_eq!(lost_after(&lease).await, 120);
    assert_eq!(lease.loss(), Some(LeaseLoss::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_hangs_leaves_time_for_another() {
    let server = Server::new(time(30, 86_400), |now| if now < 15 { Answer::Silence } else { Answer::Extended });
    let keeper = LeaseKeeper::start(server.clone(), options());
    let lease = keep(&keeper, time(30, 86_400));
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(!lease.lost().is_cancelled(), "{:?}", server.asked());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_the_server_has_taken_is_lost_with_the_next_heartbeat() {
    let server = Server::new(time(120, 86_400), |_| Answer::Lost);
    let keeper = LeaseKeeper::start(server, options());
    let lease = keep(&keeper, time(120, 86_400));
    assert_eq!(lost_after(&lease).await, 40);
    assert_eq!(lease.loss(), Some(LeaseLoss::Taken));
}

#[tokio::test(start_paused = true)]
async fn the_attempts_deadline_is_told_before_it_comes_and_then_ends_the_lease() {
    let server = Server::new(time(60, 300), |_| Answer::Extended);
    let keeper = LeaseKeeper::start(server.clone(), options());
    let (lease, start) = (keep(&keeper, time(60, 300)), Instant::now());
    lease.deadline_near().cancelled().await;
    assert_eq!(start.elapsed().as_secs(), 285);
    assert!(!lease.lost().is_cancelled());
    assert_eq!(lost_after(&lease).await, 15);
    assert_eq!(lease.loss(), Some(LeaseLoss::DeadlinePassed));
    assert!(server.asked().len() < 25, "{:?}", server.asked());
}

#[tokio::test(start_paused = true)]
async fn more_leases_than_fit_into_one_heartbeat_are_all_extended() {
    let server = Server::new(time(120, 86_400), |_| Answer::Extended);
    let keeper = LeaseKeeper::start(server.clone(), LeaseKeeperOptions { batch: 100, ..options() });
    let leases: Vec<_> = (0..250).map(|_| keep(&keeper, time(120, 86_400))).collect();
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    assert!(leases.iter().all(|lease| !lease.lost().is_cancelled()));
    assert!(server.asked().iter().all(|(_, count)| *count <= 100));
}

#[tokio::test(start_paused = true)]
async fn a_keeper_that_is_gone_extends_nothing() {
    let server = Server::new(time(120, 86_400), |_| Answer::Extended);
    let keeper = LeaseKeeper::start(server.clone(), options());
    let _lease = keep(&keeper, time(120, 86_400));
    drop(keeper);
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(server.asked(), []);
}
