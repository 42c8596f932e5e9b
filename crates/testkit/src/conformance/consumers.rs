//! The durable cursors of consumers.

use std::time::Duration;

use agents::{ConsumerKey, Holder, InFlight, RestWindow, Save, SaveOutcome, Take, Taken, WindowWrite};
use authz::{PrincipalKind, TenantState};
use domain::{ConsumerName, PrincipalId, SessionId, StoreError, SyncEpoch};

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, seq, tenant};

/// A store with agent `bot` and a log of five events.
async fn fixture(harness: &dyn Harness) -> Fixture {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("bot", PrincipalKind::Agent).await;
    fixture.fill(5).await;
    fixture
}

fn key(name: &str) -> ConsumerKey {
    ConsumerKey { tenant: tenant("acme"), agent: PrincipalId::parse("bot").unwrap(), name: ConsumerName::parse(name).unwrap() }
}

fn session() -> Holder {
    Holder::Gateway(SessionId::new(fresh()))
}

async fn take(fixture: &Fixture, name: &str, holder: Holder) -> Taken {
    fixture.store.take(&Take { key: key(name), holder }, 10).await.unwrap()
}

async fn save(fixture: &Fixture, name: &str, holder: Holder, acked: Option<u64>) -> SaveOutcome {
    fixture.store.save(&[Save { key: key(name), holder, acked: acked.map(seq) }]).await.unwrap()[0]
}

fn window(fixture: &Fixture) -> RestWindow {
    let in_flight = (6..=8).map(|value| InFlight { seq: seq(value), dispatched_at: fixture.now() }).collect();
    RestWindow { read: seq(8), sent_before: seq(5), page_first: seq(6), highest_sent: seq(8), redeliver_up_to: seq(7), in_flight }
}

/// Stores a window for the REST holder.
async fn write_window(fixture: &Fixture, name: &str, expected_version: u64) -> bool {
    fixture.store.write_window(&WindowWrite { key: key(name), expected_version, window: window(fixture) }).await.unwrap()
}

pub(crate) async fn a_first_take_makes_the_row_at_the_committed_head(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let holder = session();
    let taken = take(&fixture, "default", holder).await;
    assert!(taken.created && taken.previous.is_none());
    assert_eq!((taken.head, taken.floor, taken.now), (seq(5), seq(1), fixture.now()));
    assert_eq!((taken.row.acked, taken.row.holder, taken.row.epoch), (seq(5), Some(holder), taken.epoch));
    assert_eq!(taken.row.window, RestWindow::default());
    let status = fixture.store.status(&key("default")).await.unwrap().unwrap();
    assert_eq!((status.row, status.head, status.epoch), (taken.row, seq(5), taken.epoch));
    assert_eq!((status.name.as_str(), status.updated_at), ("default", fixture.now()));
    assert!(fixture.store.status(&key("absent")).await.unwrap().is_none());
}

pub(crate) async fn a_later_take_keeps_what_is_acknowledged_also_after_a_restart(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let first = session();
    take(&fixture, "default", first).await;
    fixture.fill(3).await;
    save(&fixture, "default", first, Some(7)).await;
    let fixture = fixture.reopen().await;
    let taken = take(&fixture, "default", session()).await;
    assert!(!taken.created);
    assert_eq!((taken.row.acked, taken.previous, taken.head), (seq(7), Some(first), seq(8)));
}

pub(crate) async fn an_agent_has_at_most_so_many_consumers(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    for name in ["a", "b"] {
        fixture.store.take(&Take { key: key(name), holder: Holder::Rest }, 2).await.unwrap();
    }
    let refused = fixture.store.take(&Take { key: key("c"), holder: Holder::Rest }, 2).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert!(fixture.store.status(&key("c")).await.unwrap().is_none());
    fixture.store.take(&Take { key: key("a"), holder: session() }, 2).await.unwrap();
}

pub(crate) async fn a_take_that_changes_the_holder_clears_the_window_and_raises_the_version(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let first = take(&fixture, "default", Holder::Rest).await.row.window_version;
    assert!(write_window(&fixture, "default", first).await);
    let again = take(&fixture, "default", Holder::Rest).await;
    assert_eq!((again.row.window, again.row.window_version), (window(&fixture), first + 1), "the same holder keeps it");
    let taken = take(&fixture, "default", session()).await;
    assert_eq!((taken.row.window, taken.row.window_version), (RestWindow::default(), first + 2));
    assert_eq!(taken.previous, Some(Holder::Rest));
    let back = take(&fixture, "default", Holder::Rest).await;
    assert_eq!(back.row.window_version, first + 3);
    assert_eq!(fixture.store.status(&key("default")).await.unwrap().unwrap().row, back.row);
}

pub(crate) async fn nobody_takes_for_an_inactive_tenant_or_an_absent_agent(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let other = ConsumerKey { agent: PrincipalId::parse("ghost").unwrap(), ..key("default") };
    let refused = fixture.store.take(&Take { key: other, holder: Holder::Rest }, 9).await;
    assert_eq!(refused.unwrap_err(), StoreError::TenantInactive);
    take(&fixture, "default", Holder::Rest).await;
    fixture.set_state(TenantState::Suspended).await;
    let refused = fixture.store.take(&Take { key: key("default"), holder: session() }, 9).await;
    assert_eq!(refused.unwrap_err(), StoreError::TenantInactive);
    let absent = ConsumerKey { tenant: tenant("absent"), ..key("default") };
    assert_eq!(fixture.store.take(&Take { key: absent, holder: session() }, 9).await.unwrap_err(), StoreError::TenantInactive);
}

pub(crate) async fn a_save_matches_the_holder_and_never_lowers(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let (old, new) = (session(), session());
    take(&fixture, "default", old).await;
    fixture.fill(5).await;
    assert_eq!(save(&fixture, "default", old, Some(8)).await, SaveOutcome::Held(seq(8)));
    assert_eq!(save(&fixture, "default", old, Some(6)).await, SaveOutcome::Held(seq(8)));
    take(&fixture, "default", new).await;
    assert_eq!(save(&fixture, "default", old, Some(10)).await, SaveOutcome::Replaced);
    assert_eq!(save(&fixture, "default", old, None).await, SaveOutcome::Replaced);
    assert_eq!(save(&fixture, "default", new, None).await, SaveOutcome::Held(seq(8)), "nothing was written by the old one");
    assert_eq!(save(&fixture, "absent", new, Some(9)).await, SaveOutcome::Replaced);
}

pub(crate) async fn a_batch_of_saves_is_answered_in_order_and_each_stands_alone(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let (one, two) = (session(), session());
    take(&fixture, "one", one).await;
    take(&fixture, "two", two).await;
    fixture.fill(5).await;
    let entry = |name, holder, acked: Option<u64>| Save { key: key(name), holder, acked: acked.map(seq) };
    let saves = [entry("one", two, Some(9)), entry("two", two, Some(7)), entry("one", one, None), entry("gone", one, Some(6))];
    let outcomes = fixture.store.save(&saves).await.unwrap();
    let expected = [SaveOutcome::Replaced, SaveOutcome::Held(seq(7)), SaveOutcome::Held(seq(5)), SaveOutcome::Replaced];
    assert_eq!(outcomes, expected);
    assert_eq!(fixture.store.save(&[]).await, Ok(Vec::new()));
}

pub(crate) async fn a_verification_learns_what_rest_acknowledged(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let holder = session();
    take(&fixture, "default", holder).await;
    fixture.fill(5).await;
    fixture.store.ack(&key("default"), seq(9)).await.unwrap();
    assert_eq!(save(&fixture, "default", holder, None).await, SaveOutcome::Held(seq(9)));
    assert_eq!(save(&fixture, "default", holder, Some(7)).await, SaveOutcome::Held(seq(9)));
}

pub(crate) async fn an_ack_needs_no_holder_and_never_lowers(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    take(&fixture, "default", session()).await;
    fixture.fill(5).await;
    fixture.clock.advance(Duration::from_secs(1));
    let status = fixture.store.ack(&key("default"), seq(8)).await.unwrap().unwrap();
    assert_eq!((status.row.acked, status.head, status.updated_at), (seq(8), seq(10), fixture.now()));
    fixture.clock.advance(Duration::from_secs(1));
    let status = fixture.store.ack(&key("default"), seq(6)).await.unwrap().unwrap();
    assert_eq!(status.row.acked, seq(8));
    assert_ne!(status.updated_at, fixture.now(), "nothing was written");
    assert!(fixture.store.ack(&key("absent"), seq(6)).await.unwrap().is_none());
    let other = ConsumerKey { tenant: tenant("absent"), ..key("default") };
    assert!(fixture.store.ack(&other, seq(6)).await.unwrap().is_none());
}

pub(crate) async fn an_ack_changes_nothing_in_a_row_of_another_epoch(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    take(&fixture, "default", session()).await;
    fixture.fill(5).await;
    let past = SyncEpoch::new(fresh());
    let statement = format!("UPDATE agent_consumer_cursors SET epoch = {}", fixture.literal(past.uuid()));
    assert_eq!(fixture.execute(&statement).await, 1);
    let status = fixture.store.ack(&key("default"), seq(8)).await.unwrap().unwrap();
    assert_eq!((status.row.acked, status.row.epoch), (seq(5), past));
    assert_ne!(status.epoch, past);
    let taken = take(&fixture, "default", session()).await;
    assert_eq!((taken.row.epoch, taken.row.acked), (taken.epoch, seq(5)), "a take moves the row into the present epoch");
}

pub(crate) async fn a_restart_clears_the_window_and_moves_the_cursor_down_only_from_above_the_head(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let taken = take(&fixture, "default", Holder::Rest).await;
    let (head, version) = (taken.head, taken.row.window_version);
    assert_eq!(taken.row.acked, head);
    write_window(&fixture, "default", version).await;
    assert_eq!(fixture.store.restart(&key("default"), session(), seq(2)).await, Ok(SaveOutcome::Replaced));
    let kept = fixture.store.restart(&key("default"), Holder::Rest, seq(2)).await;
    assert_eq!(kept, Ok(SaveOutcome::Held(head)), "what is acknowledged and exists stays");
    let row = fixture.store.status(&key("default")).await.unwrap().unwrap().row;
    assert_eq!((row.acked, row.window, row.window_version), (head, RestWindow::default(), version + 2));
    assert_eq!(row.holder, Some(Holder::Rest));
    fixture.store.ack(&key("default"), head.plus(7)).await.unwrap();
    assert_eq!(
        fixture.store.restart(&key("default"), Holder::Rest, head).await,
        Ok(SaveOutcome::Held(head)),
        "from above the head it goes down"
    );
    assert_eq!(fixture.store.restart(&key("absent"), Holder::Rest, seq(5)).await, Ok(SaveOutcome::Replaced));
}

pub(crate) async fn a_window_is_written_only_for_the_rest_holder_and_the_version_that_was_read(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let version = take(&fixture, "default", Holder::Rest).await.row.window_version;
    assert!(!write_window(&fixture, "default", version + 1).await);
    assert!(write_window(&fixture, "default", version).await);
    assert!(!write_window(&fixture, "default", version).await, "the version went up");
    let row = fixture.store.status(&key("default")).await.unwrap().unwrap().row;
    assert_eq!((row.window, row.window_version), (window(&fixture), version + 1));
    let version = take(&fixture, "default", session()).await.row.window_version;
    assert!(!write_window(&fixture, "default", version).await, "a gateway session holds it");
    assert!(!write_window(&fixture, "absent", 1).await);
}

pub(crate) async fn acks_and_saves_leave_the_window_alone(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let version = take(&fixture, "default", Holder::Rest).await.row.window_version;
    fixture.fill(5).await;
    write_window(&fixture, "default", version).await;
    fixture.store.ack(&key("default"), seq(7)).await.unwrap();
    save(&fixture, "default", Holder::Rest, Some(8)).await;
    let row = fixture.store.status(&key("default")).await.unwrap().unwrap().row;
    assert_eq!((row.acked, row.window, row.window_version), (seq(8), window(&fixture), version + 1));
}

pub(crate) async fn consumers_are_listed_by_name_behind_a_name(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    for name in ["c", "a", "b"] {
        take(&fixture, name, Holder::Rest).await;
    }
    let agent = PrincipalId::parse("bot").unwrap();
    let list = |after: Option<&'static str>, limit| {
        let (store, agent, after) = (&fixture.store, agent.clone(), after.map(|name| ConsumerName::parse(name).unwrap()));
        async move {
            let listed = store.list(&tenant("acme"), &agent, after.as_ref(), limit).await.unwrap();
            listed.iter().map(|status| status.name.as_str().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(None, 9).await, ["a", "b", "c"]);
    assert_eq!(list(None, 2).await, ["a", "b"]);
    assert_eq!(list(Some("a"), 9).await, ["b", "c"]);
    let nobody = fixture.store.list(&fixture.tenant, &PrincipalId::parse("ghost").unwrap(), None, 9).await.unwrap();
    assert!(nobody.is_empty());
}

pub(crate) async fn takes_since_an_instant_are_told_with_their_holder(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    take(&fixture, "early", Holder::Rest).await;
    fixture.clock.advance(Duration::from_secs(5));
    let since = fixture.now();
    let holder = session();
    take(&fixture, "late", holder).await;
    assert_eq!(fixture.store.taken_since(since).await, Ok(vec![(key("late"), Some(holder))]));
    fixture.clock.advance(Duration::from_secs(5));
    take(&fixture, "early", Holder::Rest).await;
    let since_then = fixture.store.taken_since(since).await.unwrap();
    assert_eq!(since_then, [(key("late"), Some(holder)), (key("early"), Some(Holder::Rest))], "a repeated take counts");
    fixture.clock.advance(Duration::from_secs(5));
    fixture.store.ack(&key("late"), seq(5)).await.unwrap();
    assert_eq!(fixture.store.taken_since(fixture.now()).await, Ok(Vec::new()), "only takes count");
}

pub(crate) async fn consumers_of_one_agent_do_not_touch(harness: &dyn Harness) {
    let fixture = fixture(harness).await;
    let (one, two) = (session(), session());
    take(&fixture, "one", one).await;
    take(&fixture, "two", two).await;
    fixture.fill(2).await;
    save(&fixture, "one", one, Some(7)).await;
    take(&fixture, "one", session()).await;
    assert_eq!(save(&fixture, "two", two, None).await, SaveOutcome::Held(seq(5)));
}
