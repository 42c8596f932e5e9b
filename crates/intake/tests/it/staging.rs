//! Moving what applications handed in.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::{ChannelRef, EventId, PrincipalId, StoreError, TenantId, Timestamp, Transactions, Unit};
use intake::{
    MoveTx, Mover, MoverParts, PublishLimits, ScheduleBell, Settings, Staged, StagedHint, StagedNumber, StagedState, StagedStore,
    StagedWrite,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::fake::{Fake, Tx};
use crate::world::{World, channel, id, tenant};

#[async_trait]
impl StagedWrite for Tx {
    async fn lock_staged(&mut self, tenant: &TenantId, limit: usize) -> Result<Vec<Staged>, StoreError> {
        let waiting = self.0.staged.iter().filter(|(t, staged)| t == tenant && staged.state == StagedState::Waiting);
        Ok(waiting.take(limit).map(|(_, staged)| staged.clone()).collect())
    }

    async fn remove_staged(&mut self, tenant: &TenantId, numbers: &[StagedNumber]) -> Result<(), StoreError> {
        self.0.staged.retain(|(t, staged)| t != tenant || !numbers.contains(&staged.number));
        Ok(())
    }

    async fn fail_staged(&mut self, tenant: &TenantId, at: Timestamp, failed: &[(StagedNumber, String)]) -> Result<(), StoreError> {
        for (number, failure) in failed {
            for (_, staged) in self.0.staged.iter_mut().filter(|(t, staged)| t == tenant && staged.number == *number) {
                (staged.state, staged.failure, staged.staged_at) = (StagedState::Failed, Some(failure.clone()), at);
            }
        }
        Ok(())
    }

    async fn existing_channels(&mut self, _tenant: &TenantId, channels: &BTreeSet<ChannelRef>) -> Result<BTreeSet<ChannelRef>, StoreError> {
        self.0.asked += 1;
        Ok(channels & &self.0.channels)
    }

    async fn existing_agents(&mut self, tenant: &TenantId, agents: &BTreeSet<PrincipalId>) -> Result<BTreeSet<PrincipalId>, StoreError> {
        self.0.asked += 1;
        Ok(agents.iter().filter(|agent| self.0.is_agent(tenant, agent)).cloned().collect())
    }

    async fn purge_staged(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let is_old = |staged: &Staged| staged.state == StagedState::Failed && staged.staged_at < before;
        let old: Vec<StagedNumber> =
            self.0.staged.iter().filter(|(_, staged)| is_old(staged)).map(|(_, staged)| staged.number).take(limit).collect();
        self.0.staged.retain(|(_, staged)| !old.contains(&staged.number));
        Ok(old.len() as u64)
    }

    async fn put_publish_limits(&mut self, limits: &PublishLimits) -> Result<(), StoreError> {
        self.0.limits = Some(*limits);
        Ok(())
    }
}

#[async_trait]
impl StagedStore for Fake {
    async fn tenants_with_staged(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>, StoreError> {
        let waiting = self.snapshot()?.staged.into_iter().filter(|(_, staged)| staged.state == StagedState::Waiting);
        let mut tenants: Vec<TenantId> =
            waiting.map(|(tenant, _)| tenant).filter(|tenant| after.is_none_or(|after| tenant > after)).collect();
        tenants.sort();
        tenants.dedup();
        tenants.truncate(limit);
        Ok(tenants)
    }

    async fn staged(
        &self,
        tenant: &TenantId,
        publisher: Option<&PrincipalId>,
        after: Option<StagedNumber>,
        limit: usize,
    ) -> Result<Vec<Staged>, StoreError> {
        let own = self.snapshot()?.staged.into_iter().filter(|(t, _)| t == tenant).map(|(_, staged)| staged);
        let wanted =
            |staged: &Staged| publisher.is_none_or(|own| staged.publisher == *own) && after.is_none_or(|after| staged.number > after);
        Ok(own.filter(wanted).take(limit).collect())
    }
}

#[async_trait]
impl Transactions<dyn MoveTx> for Fake {
    async fn run(&self, _name: &'static str, mut unit: Unit<dyn MoveTx>) -> Result<(), StoreError> {
        self.transactions.fetch_add(1, Ordering::SeqCst);
        unit(&mut Tx(self.snapshot()?)).await.ok();
        let mut tx = Tx(self.snapshot()?);
        unit(&mut tx).await?;
        *self.state.lock().unwrap() = tx.0;
        Ok(())
    }
}

fn mover(world: &World, settings: Settings) -> Mover {
    moving_over(world, world.store.clone(), settings)
}

fn moving_over(world: &World, transactions: Arc<dyn Transactions<dyn MoveTx>>, settings: Settings) -> Mover {
    let staged: Arc<dyn StagedStore> = world.store.clone();
    Mover::new(MoverParts {
        staged,
        transactions,
        clock: world.parts.clock.clone(),
        hint: StagedHint::default(),
        bell: ScheduleBell::default(),
        metrics: world.parts.metrics.clone(),
        settings,
    })
}

/// Stages an event and answers its id.
fn stage(world: &World, event: &str) -> EventId {
    let mut state = world.store.state.lock().unwrap();
    state.channels.insert(channel("s/c"));
    let number = state.staged.len() as u64 + 1;
    let staged = Staged {
        number: StagedNumber(number),
        id: EventId::new(Uuid::from_u128(u128::from(number) + (1 << 64))),
        publisher: id("shop"),
        event: event.to_owned(),
        staged_at: world.parts.clock.now(),
        state: StagedState::Waiting,
        failure: None,
    };
    let event = staged.id;
    state.staged.push((tenant(), staged));
    event
}

fn log(world: &World) -> Vec<EventId> {
    world.store.state.lock().unwrap().log.iter().map(|(_, publication)| publication.id).collect()
}

fn failed(world: &World) -> Vec<EventId> {
    let state = world.store.state.lock().unwrap();
    state.staged.iter().filter(|(_, staged)| staged.state == StagedState::Failed).map(|(_, staged)| staged.id).collect()
}

const EVENT: &str = r#"{"type": "a.b", "channel": "s/c", "payload": {"n": 1}}"#;

#[tokio::test(start_paused = true)]
async fn events_keep_their_order_and_their_ids() {
    let world = World::new().await;
    let ids: Vec<EventId> = (0..10).map(|_| stage(&world, EVENT)).collect();
    mover(&world, Settings { promote_batch: 3, ..Settings::default() }).move_all().await.unwrap();
    assert_eq!(log(&world), ids);
    assert!(world.store.state.lock().unwrap().staged.is_empty());
    assert_eq!(world.parts.metrics.moved.get(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_store_refuses_holds_up_nobody_and_is_found_with_few_attempts() {
    let world = World::new().await;
    let ids: Vec<EventId> = (0..100).map(|_| stage(&world, EVENT)).collect();
    let poison = [ids[0], ids[57], ids[99]];
    world.store.state.lock().unwrap().poison.extend(poison);
    mover(&world, Settings { promote_batch: 100, ..Settings::default() }).move_all().await.unwrap();
    assert_eq!(log(&world), ids.iter().copied().filter(|id| !poison.contains(id)).collect::<Vec<_>>());
    assert_eq!(failed(&world), poison);
    assert!(world.store.transactions.load(Ordering::SeqCst) < 70, "{:?}", world.store.transactions);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_fails_and_a_repeat_is_dropped() {
    let world = World::new().await;
    let keyed = |n: u32| format!(r#"{{"type": "a.b", "channel": "s/c", "deduplication_key": "k", "payload": {{"n": {n}}}}}"#);
    let ids = [stage(&world, &keyed(1)), stage(&world, EVENT), stage(&world, &keyed(2)), stage(&world, &keyed(1)), stage(&world, EVENT)];
    mover(&world, Settings::default()).move_all().await.unwrap();
    assert_eq!(log(&world), [ids[0], ids[1], ids[4]]);
    assert_eq!(failed(&world), [ids[2]]);
    assert_eq!((world.parts.metrics.deduplicated.get(), world.parts.metrics.staged_failed.get()), (1, 1));
}

/// A store in which an application commits an earlier event just when a later one was refused.
struct Meanwhile {
    store: Arc<Fake>,
    late: Mutex<Option<Staged>>,
}

#[async_trait]
impl Transactions<dyn MoveTx> for Meanwhile {
    async fn run(&self, name: &'static str, unit: Unit<dyn MoveTx>) -> Result<(), StoreError> {
        let outcome = Transactions::<dyn MoveTx>::run(&*self.store, name, unit).await;
        if outcome.is_err()
            && let Some(late) = self.late.lock().unwrap().take()
        {
            self.store.state.lock().unwrap().staged.insert(0, (tenant(), late));
        }
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_that_was_refused_fails_and_not_one_that_came_before_it_meanwhile() {
    let world = World::new().await;
    let (innocent, refused) = (stage(&world, EVENT), stage(&world, EVENT));
    let late = {
        let mut state = world.store.state.lock().unwrap();
        state.poison.insert(refused);
        state.staged.remove(0).1
    };
    let meanwhile = Meanwhile { store: world.store.clone(), late: Mutex::new(Some(late)) };
    moving_over(&world, Arc::new(meanwhile), Settings::default()).move_all().await.unwrap();
    assert_eq!((log(&world), failed(&world)), (vec![innocent], vec![refused]));
}

#[tokio::test(start_paused = true)]
async fn what_is_for_later_is_scheduled_in_its_publishers_name() {
    let world = World::new().await;
    let at = world.parts.clock.now().plus(Duration::from_hours(1));
    let event = stage(&world, &format!(r#"{{"type": "a.b", "channel": "s/c", "available_at": "{at}"}}"#));
    mover(&world, Settings::default()).move_all().await.unwrap();
    let state = world.store.state.lock().unwrap().clone();
    assert!(state.log.is_empty() && state.staged.is_empty());
    assert_eq!((state.scheduled[0].1.schedule.publication.id, state.scheduled[0].1.schedule.publisher.clone()), (event, id("shop")));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_loses_nothing() {
    let world = World::new().await;
    let event = stage(&world, EVENT);
    let (moving, token, tasks) = (mover(&world, Settings::default()), CancellationToken::new(), TaskTracker::new());
    world.store.broken.store(true, Ordering::SeqCst);
    let stop = token.clone();
    tasks.spawn(async move { moving.run(stop).await });
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(world.parts.metrics.move_errors.get() > 10);
    world.store.broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(log(&world), [event]);
    assert_eq!(world.store.state.lock().unwrap().limits, Some(PublishLimits::from(&Settings::default())), "the limits were told");
    token.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_listed_for_a_while_and_everybody_sees_their_own() {
    let world = World::new().await;
    stage(&world, r#"{"type": "a.b", "channel": "no/such"}"#);
    let (moving, token, tasks) = (
        mover(&world, Settings { staged_interval: Duration::from_hours(1), ..Settings::default() }),
        CancellationToken::new(),
        TaskTracker::new(),
    );
    let stop = token.clone();
    tasks.spawn(async move { moving.run(stop).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let publisher = intake::Publisher::new(world.parts.clone()).with_staged(world.store.clone());
    let page = publisher.staged(&world.owner, None, 10).await.unwrap();
    assert_eq!((page.items.len(), page.items[0].state, page.next), (1, StagedState::Failed, None));
    assert_eq!(page.items[0].failure.as_deref(), Some("The channel does not exist any more."));
    assert!(world.publisher.staged(&world.owner, None, 10).await.unwrap().items.is_empty(), "a store that nobody shares has none");
    tokio::time::sleep(Duration::from_hours(24 * 31)).await;
    assert!(publisher.staged(&world.owner, None, 10).await.unwrap().items.is_empty());
    token.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn what_there_is_is_asked_once_for_a_whole_batch() {
    let world = World::new().await;
    world.principal("alpha", authz::PrincipalKind::Agent).await;
    let to_agent = r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha"}]}"#;
    let to_nobody = r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "nobody"}]}"#;
    let to_nothing = r#"{"type": "a.b", "channel": "no/such"}"#;
    let ids: Vec<EventId> = (0..40).map(|n| stage(&world, [EVENT, to_agent, to_nobody, to_nothing][n % 4])).collect();
    mover(&world, Settings { promote_batch: 100, ..Settings::default() }).move_all().await.unwrap();
    assert_eq!(log(&world), ids.iter().copied().enumerate().filter(|(n, _)| n % 4 < 2).map(|(_, id)| id).collect::<Vec<_>>());
    assert_eq!(failed(&world).len(), 20);
    assert_eq!(world.store.state.lock().unwrap().asked, 2, "after channels, and after agents");
}

#[tokio::test(start_paused = true)]
async fn a_mover_that_is_stopped_ends_after_the_batch_that_it_has_in_hand() {
    let world = World::new().await;
    for _ in 0..1_000 {
        stage(&world, EVENT);
    }
    let token = CancellationToken::new();
    let stopping = Stopping { store: world.store.clone(), token: token.clone() };
    moving_over(&world, Arc::new(stopping), Settings { promote_batch: 10, ..Settings::default() }).run(token).await;
    assert_eq!(log(&world).len(), 10);
}

/// A store during whose first batch the process is stopped.
struct Stopping {
    store: Arc<Fake>,
    token: CancellationToken,
}

#[async_trait]
impl Transactions<dyn MoveTx> for Stopping {
    async fn run(&self, name: &'static str, unit: Unit<dyn MoveTx>) -> Result<(), StoreError> {
        if name == "events.move" {
            self.token.cancel();
        }
        Transactions::<dyn MoveTx>::run(&*self.store, name, unit).await
    }
}
