//! No room: refused clearly, what is stored stays intact, writing works again once there is room.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Publication, StoreError};
use doorstep_store_sqlite::{SqliteStore, StoreOptions};
use sync::{Append, LogStore};

use crate::support::{Fixture, Gate, new_seq, range};

const ROOM: u64 = 1 << 20;

fn bounded(max_bytes: u64) -> StoreOptions {
    StoreOptions { max_bytes: Some(max_bytes), ..StoreOptions::default() }
}

fn large(fixture: &Fixture, bytes: usize) -> Publication {
    Publication { body: Bytes::from(vec![b' '; bytes]), ..fixture.event("x") }
}

/// Appends events of 20 KB until there is no room; answers how many were acknowledged.
async fn fill(fixture: &Fixture) -> u64 {
    for turn in 0..10_000 {
        match fixture.append(vec![large(fixture, 20_000)]).await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, StoreError::Full);
                return turn;
            }
        }
    }
    panic!("it never became full");
}

async fn assert_intact(fixture: &Fixture, acknowledged: u64) {
    let page = fixture.page_after(0).await.unwrap();
    assert_eq!((page.head.seq.get(), page.events.len() as u64), (acknowledged, acknowledged));
    assert!(fixture.store.check().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_full_store_refuses_keeps_what_it_has_and_recovers_with_more_room() {
    let fixture = Fixture::with(bounded(ROOM)).await;
    let acknowledged = fill(&fixture).await;
    assert!(acknowledged > 10, "{acknowledged}");
    for _ in 0..3 {
        assert_eq!(fixture.append(vec![large(&fixture, 20_000)]).await, Err(StoreError::Full));
    }
    assert_intact(&fixture, acknowledged).await;
    fixture.store.close().await;
    let (dir, clock) = (Arc::clone(&fixture.dir), Arc::clone(&fixture.clock));
    drop(fixture);
    let store = SqliteStore::open(dir.path(), bounded(2 * ROOM), clock.clone()).unwrap();
    let fixture = Fixture::over(dir, store, clock);
    assert_eq!(new_seq(&fixture.append(vec![large(&fixture, 20_000)]).await.unwrap()[0]), acknowledged + 1);
    assert_intact(&fixture, acknowledged + 1).await;
}

#[tokio::test]
async fn retention_makes_room_without_a_restart() {
    let fixture = Fixture::with(bounded(ROOM)).await;
    let acknowledged = fill(&fixture).await;
    fixture.clock.advance(Duration::from_secs(1));
    fixture.store.raise_floor(&fixture.tenant, fixture.now(), 10).await.unwrap();
    fixture.store.sweep(&fixture.tenant, fixture.now(), 10).await.unwrap();
    let later = fixture.now().plus(Duration::from_secs(1));
    assert_eq!(fixture.store.sweep(&fixture.tenant, later, 10).await.unwrap().removed, 10);
    assert_eq!(new_seq(&fixture.append(vec![large(&fixture, 20_000)]).await.unwrap()[0]), acknowledged + 1);
}

#[tokio::test]
async fn a_request_without_room_does_not_take_its_neighbours_along() {
    let fixture = Arc::new(Fixture::with(bounded(ROOM)).await);
    let gate = Gate::close(&fixture).await;
    let mut waiting = tokio::task::JoinSet::new();
    for (turn, size) in [100, 4 << 20, 200, 4 << 20, 300].into_iter().enumerate() {
        let of_batch = Arc::clone(&fixture);
        waiting.spawn(async move { (turn, of_batch.append(vec![of_batch.event("first"), large(&of_batch, size)]).await) });
        fixture.wait_for(|metrics| metrics.queued == turn as u64 + 1).await;
    }
    gate.open().await;
    let mut outcomes = waiting.join_all().await;
    outcomes.sort_by_key(|(turn, _)| *turn);
    let seqs: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome.map(|appended| new_seq(&appended[1]))).collect();
    assert_eq!(seqs, [Ok(2), Err(StoreError::Full), Ok(4), Err(StoreError::Full), Ok(6)]);
    assert_intact(&fixture, 6).await;
}

#[tokio::test]
async fn a_unit_without_room_is_undone_and_no_listener_hears_of_it() {
    let fixture = Fixture::with(bounded(ROOM)).await;
    let recorder = crate::support::Recorder::listen(&fixture);
    let (tenant, events) = (fixture.tenant.clone(), vec![fixture.event("x"), large(&fixture, 4 << 20)]);
    let outcome = fixture
        .publish_tx(move |tx| {
            let (tenant, events) = (tenant.clone(), events.clone());
            Box::pin(async move { tx.append(&tenant, &events).await })
        })
        .await;
    assert_eq!(outcome, Err(StoreError::Full));
    fixture.fill(1).await;
    assert_eq!(recorder.seqs("acme"), [1]);
    assert_intact(&fixture, 1).await;
}

/// A file system of its own, a few megabytes large, in a mount name space that only this thread sees.
#[cfg(target_os = "linux")]
mod medium {
    use std::path::Path;
    use std::process::Command;

    /// Mounts it, when this process may.
    pub(super) struct Tiny<'a>(&'a Path);

    impl<'a> Tiny<'a> {
        pub(super) fn mount(at: &'a Path, bytes: u64) -> Option<Self> {
            let options = format!("size={bytes}");
            let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
            mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
        }

        pub(super) fn resize(&self, bytes: u64) {
            let options = format!("remount,size={bytes}");
            assert!(Command::new("mount").args(["-o", &options]).arg(self.0).status().unwrap().success());
        }
    }

    impl Drop for Tiny<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
}

/// The same with a medium that is really full. Where mounting is not allowed, the store's own bound stands for it.
#[tokio::test]
async fn a_full_medium_refuses_keeps_what_it_has_and_recovers_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = crate::support::clock();
    #[cfg(target_os = "linux")]
    let tiny = medium::Tiny::mount(dir.path(), 4 << 20);
    #[cfg(not(target_os = "linux"))]
    let tiny = None::<()>;
    let options = if tiny.is_some() { StoreOptions::default() } else { bounded(2 << 20) };
    let path = dir.path().join("data");
    let store = SqliteStore::open(&path, options, clock.clone()).unwrap();
    let fixture = Fixture::over(Arc::new(tempfile::tempdir().unwrap()), store, Arc::clone(&clock));
    fixture.create_tenant("acme").await;
    let acknowledged = fill(&fixture).await;
    assert!(acknowledged > 10, "{acknowledged}");
    assert_eq!(fixture.append(vec![large(&fixture, 20_000)]).await, Err(StoreError::Full));
    let page = fixture.store.page(&fixture.tenant, range(0)).await.unwrap();
    assert_eq!(page.events.len() as u64, acknowledged);
    #[cfg(target_os = "linux")]
    if let Some(tiny) = &tiny {
        tiny.resize(64 << 20);
        let answer = fixture.store.append(&fixture.tenant, vec![large(&fixture, 20_000)]).await.unwrap();
        assert_eq!(new_seq(&answer.appended[0]), acknowledged + 1);
    }
    fixture.store.close().await;
    let store = SqliteStore::open(&path, StoreOptions::default(), clock).unwrap();
    let page = store.page(&fixture.tenant, range(0)).await.unwrap();
    assert!(page.events.len() as u64 >= acknowledged);
    assert!(store.check().await.unwrap().is_sound());
    store.close().await;
}
