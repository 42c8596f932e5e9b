//! From committed transactions into the log.

use std::time::Duration;

use authz::TenantState;
use domain::{Actor, ActorKind, PrincipalId};
use intake::{ScheduleStore, Settings, StagedState, StagedStore};
use serde_json::Value;
use sync::{Append, LogStore};
use testkit::conformance::support::new_seq;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::support::{World, channel, event, keyed, mover, publish, run};

#[tokio::test]
async fn the_event_is_there_with_the_applications_rows_and_bears_its_name() {
    let world = World::new().await;
    let mut app = world.app().await;
    run(&mut app, "BEGIN").await.unwrap();
    run(&mut app, "INSERT INTO orders VALUES (1)").await.unwrap();
    let id = publish(&mut app, "acme", &event("one")).await.unwrap();
    assert_eq!(id.get_version_num(), 7);
    world.move_all().await;
    assert!(world.log().await.is_empty() && world.staged().await.is_empty(), "not before the commit");
    run(&mut app, "COMMIT").await.unwrap();
    assert_eq!(world.staged().await.len(), 1);
    world.move_all().await;
    let events = world.events().await;
    assert_eq!((events.len(), events[0].id.uuid(), events[0].channel.clone()), (1, id, Some(channel())));
    assert!(world.staged().await.is_empty());
    let envelope: Value = serde_json::from_slice(&events[0].envelope(domain::DeliveryFields::default())).unwrap();
    let actor = Actor { kind: ActorKind::App, id: PrincipalId::parse(&world.role).unwrap() };
    assert_eq!(envelope["actor"], serde_json::to_value(actor).unwrap());
    assert_eq!(envelope["payload"]["text"], "one");
    assert_eq!(envelope["id"], id.to_string());
}

#[tokio::test]
async fn what_is_rolled_back_never_appears() {
    let world = World::new().await;
    let mut app = world.app().await;
    run(&mut app, "BEGIN").await.unwrap();
    publish(&mut app, "acme", &event("lost")).await.unwrap();
    run(&mut app, "SAVEPOINT a").await.unwrap();
    run(&mut app, "ROLLBACK TO a").await.unwrap();
    run(&mut app, "ROLLBACK").await.unwrap();
    run(&mut app, "BEGIN").await.unwrap();
    let kept = publish(&mut app, "acme", &event("kept")).await.unwrap();
    run(&mut app, "SAVEPOINT a").await.unwrap();
    publish(&mut app, "acme", &event("undone")).await.unwrap();
    run(&mut app, "ROLLBACK TO a").await.unwrap();
    run(&mut app, "COMMIT").await.unwrap();
    world.move_all().await;
    assert_eq!(world.log().await, [kept]);
    drop(app);
    let mut app = world.app().await;
    run(&mut app, "BEGIN").await.unwrap();
    publish(&mut app, "acme", &event("cut")).await.unwrap();
    drop(app);
    world.move_all().await;
    assert_eq!(world.log().await, [kept], "a session that goes takes its events along");
}

/// The whole time of the held transaction, scaled down: what would wait for it waits for a lock, and says so after a moment.
#[tokio::test]
async fn a_transaction_that_is_held_open_keeps_nobody_waiting() {
    let world = World::new().await;
    let mut holder = world.app().await;
    run(&mut holder, "BEGIN").await.unwrap();
    run(&mut holder, "INSERT INTO orders VALUES (1)").await.unwrap();
    let held = publish(&mut holder, "acme", &keyed("held", "held")).await.unwrap();

    let (token, tasks) = (CancellationToken::new(), TaskTracker::new());
    let moving = mover(&world.store, &world.clock, Settings::default());
    let stop = token.clone();
    tasks.spawn(async move { moving.run(stop).await });
    let mut app = world.app().await;
    let mut longest = Duration::ZERO;
    let until = Instant::now() + Duration::from_secs(3);
    let mut count = 0;
    while Instant::now() < until || count < 100 {
        let began = Instant::now();
        // Every door: the appender, another application, a change of what the function looks at.
        let event = world.fixture.keyed(&format!("free-{count}"), "x");
        world.store.append(&world.fixture.tenant, vec![event]).await.unwrap();
        publish(&mut app, "acme", &keyed(&format!("app-{count}"), "y")).await.unwrap();
        world.run("UPDATE principals SET display_name = 'n' WHERE principal_id = 'alpha'").await;
        longest = longest.max(began.elapsed());
        count += 1;
    }
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    let before = wait_for(&world, 2 * count).await;
    assert!(!before.contains(&held));
    // The very key that the held transaction offers is anybody's until it is moved.
    let taken =
        timeout(Duration::from_secs(2), world.store.append(&world.fixture.tenant, vec![world.fixture.keyed("held", "first")])).await;
    assert!(new_seq(&taken.unwrap().unwrap().appended[0]) > 0);
    run(&mut holder, "COMMIT").await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while world.staged().await.iter().all(|staged| staged.state != StagedState::Failed) {
        assert!(Instant::now() < deadline, "the held event was moved");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.staged().await[0].id.uuid(), held);
    token.cancel();
    tasks.close();
    tasks.wait().await;
}

async fn wait_for(world: &World, count: usize) -> Vec<uuid::Uuid> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let log = world.log().await;
        if log.len() >= count {
            return log;
        }
        assert!(Instant::now() < deadline, "{} of {count}", log.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_follow_each_other_are_in_order_under_two_movers() {
    let world = World::new().await;
    let (token, tasks) = (CancellationToken::new(), TaskTracker::new());
    for store in [world.store.clone(), world.node().await] {
        let (moving, stop) = (mover(&store, &world.clock, Settings { promote_batch: 3, ..Settings::default() }), token.clone());
        tasks.spawn(async move { moving.run(stop).await });
    }
    let mut apps = [world.app().await, world.app().await, world.app().await];
    let mut committed = Vec::new();
    for round in 0..100_usize {
        let (first, second) = (round % 3, (round + 1) % 3);
        // The one that publishes last commits first.
        run(&mut apps[first], "BEGIN").await.unwrap();
        run(&mut apps[second], "BEGIN").await.unwrap();
        let later =
            [publish(&mut apps[first], "acme", &event("a")).await.unwrap(), publish(&mut apps[first], "acme", &event("b")).await.unwrap()];
        let sooner = publish(&mut apps[second], "acme", &event("c")).await.unwrap();
        if round % 2 == 0 {
            run(&mut apps[second], "COMMIT").await.unwrap();
            // What is committed and moved before the other commits stays before it.
            wait_for(&world, committed.len() + 1).await;
            run(&mut apps[first], "COMMIT").await.unwrap();
            committed.push(sooner);
            committed.extend(later);
        } else {
            run(&mut apps[first], "COMMIT").await.unwrap();
            run(&mut apps[second], "COMMIT").await.unwrap();
            committed.extend(later);
            committed.push(sooner);
        }
    }
    let log = wait_for(&world, committed.len()).await;
    token.cancel();
    tasks.close();
    tasks.wait().await;
    assert_eq!(log, committed);
    assert_eq!(world.log().await.len(), committed.len(), "each once");
}

#[tokio::test]
pub(crate) async fn repeats_are_dropped_and_conflicts_are_listed_and_hold_up_nobody() {
    let world = World::new().await;
    let mut app = world.app().await;
    let mut ids = Vec::new();
    for (key, text) in [("k", "one"), ("k", "one"), ("k", "another"), ("l", "one"), ("l", "one")] {
        ids.push(publish(&mut app, "acme", &keyed(key, text)).await.unwrap());
    }
    ids.push(publish(&mut app, "acme", &event("after")).await.unwrap());
    world.move_all().await;
    assert_eq!(world.log().await, [ids[0], ids[3], ids[5]], "the first of each key stands");
    let staged = world.staged().await;
    assert_eq!((staged.len(), staged[0].id.uuid(), staged[0].state), (1, ids[2], StagedState::Failed));
    assert_eq!(staged[0].failure.as_deref(), Some("The deduplication key stands for another body."));
    world.move_all().await;
    assert_eq!(world.staged().await, staged, "it is not tried again");
    publish(&mut app, "acme", &keyed("k", "one")).await.unwrap();
    world.move_all().await;
    assert_eq!((world.log().await.len(), world.staged().await.len()), (3, 1));
}

#[tokio::test]
pub(crate) async fn what_vanished_meanwhile_fails_its_event_and_no_other() {
    let world = World::new().await;
    let mut app = world.app().await;
    let to = |agent: &str| format!(r#"{{"type": "a.b", "recipients": [{{"kind": "agent", "id": "{agent}"}}]}}"#);
    let to_channel = publish(&mut app, "acme", &event("one")).await.unwrap();
    let to_beta = publish(&mut app, "acme", &to("beta")).await.unwrap();
    let to_alpha = publish(&mut app, "acme", &to("alpha")).await.unwrap();
    world.forget_channel().await;
    world.run("UPDATE principals SET enabled = false WHERE principal_id = 'beta'").await;
    world.move_all().await;
    assert_eq!(world.log().await, [to_alpha]);
    assert_eq!(world.fixture.count("inbox_items").await, 1, "with its item");
    let staged: Vec<_> = world.staged().await.into_iter().map(|staged| (staged.id.uuid(), staged.failure.unwrap())).collect();
    let expected =
        [(to_channel, "The channel does not exist any more."), (to_beta, "A recipient does not exist any more, or is disabled.")];
    assert_eq!(staged, expected.map(|(id, failure)| (id, failure.to_owned())));
    for nobodys in [publish(&mut app, "acme", &event("two")).await, publish(&mut app, "acme", &to("beta")).await] {
        assert_eq!(nobodys.unwrap_err().0, "22023", "from then on the door says so");
    }
    // They go after a while.
    world.clock.advance(Duration::from_hours(24 * 31));
    let moving = mover(&world.store, &world.clock, Settings::default());
    let token = CancellationToken::new();
    let tasks = TaskTracker::new();
    let stop = token.clone();
    tasks.spawn(async move { moving.run(stop).await });
    let deadline = Instant::now() + Duration::from_secs(5);
    while !world.staged().await.is_empty() {
        assert!(Instant::now() < deadline, "they stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    token.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn what_is_for_later_is_scheduled() {
    let world = World::new().await;
    let mut app = world.app().await;
    let at =
        |hours: u32| format!("to_char(clock_timestamp() AT TIME ZONE 'UTC' + interval '{hours} hours', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    let statement = format!(
        "SELECT public.doorstep_publish('acme', jsonb_build_object('type', 'a.b', 'channel', 's/c', 'deduplication_key', 'k', 'available_at', {}))",
        at(1)
    );
    run(&mut app, &statement).await.unwrap();
    world.move_all().await;
    assert!(world.log().await.is_empty() && world.staged().await.is_empty());
    let scheduled = world.store.scheduled(&world.fixture.tenant, None, None, 9).await.unwrap();
    assert_eq!((scheduled.len(), scheduled[0].schedule.publisher.as_str()), (1, world.role.as_str()));
    // Its key is taken.
    let again = publish(&mut app, "acme", &keyed("k", "another")).await.unwrap();
    world.move_all().await;
    assert_eq!(world.staged().await[0].id.uuid(), again);
}

#[tokio::test]
async fn a_suspended_tenants_events_wait_and_no_others_do() {
    let world = World::new().await;
    let mut app = world.app().await;
    world.run(&format!("INSERT INTO public.doorstep_publishers VALUES ('{}', 'other')", world.role)).await;
    let id = publish(&mut app, "acme", &event("one")).await.unwrap();
    let others = r#"{"type": "a.b", "audience": ["sam"]}"#;
    publish(&mut app, "other", others).await.unwrap();
    world.fixture.set_state(TenantState::Suspended).await;
    assert_eq!(publish(&mut app, "acme", &event("two")).await.unwrap_err().0, "55000");
    world.move_all().await;
    assert_eq!(world.staged().await[0].state, StagedState::Waiting);
    assert_eq!(world.store.tenants_with_staged(None, 9).await.unwrap(), []);
    world.fixture.set_state(TenantState::Active).await;
    world.move_all().await;
    assert_eq!(world.log().await, [id]);
}

#[tokio::test]
async fn an_event_that_no_release_would_let_pass_fails_and_holds_up_nobody() {
    let world = World::new().await;
    let mut app = world.app().await;
    let id = "gen_random_uuid()";
    for event in
        [r#"{"type": "access.changed", "channel": "s/c"}"#, r#"{"type": 1}"#, "[]", r#"{"type": "a.b", "channel": "s/c", "new": 1}"#]
    {
        world
            .run(&format!(
                "INSERT INTO log_staged (tenant_id, event_id, publisher, event, staged_at, state) VALUES ('acme', {id}, 'app', '{event}', 0, 'waiting')"
            ))
            .await;
    }
    let good = publish(&mut app, "acme", &event("good")).await.unwrap();
    world.move_all().await;
    assert_eq!(world.log().await, [good]);
    assert!(world.staged().await.iter().all(|staged| staged.state == StagedState::Failed && staged.failure.is_some()));
    assert_eq!(world.staged().await.len(), 4);
    let page = world.store.staged(&world.fixture.tenant, None, Some(world.staged().await[1].number), 1).await.unwrap();
    assert_eq!(page, [world.staged().await[2].clone()]);
    let own = PrincipalId::parse(&world.role).unwrap();
    assert!(world.store.staged(&world.fixture.tenant, Some(&own), None, 9).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_very_much_to_move_holds_up_neither_others_nor_the_end() {
    const MANY: i64 = 100_000;
    let world = World::new().await;
    world.run(&format!("INSERT INTO public.doorstep_publishers VALUES ('{}', 'other')", world.role)).await;
    world
        .run(&format!(
            "INSERT INTO log_staged (tenant_id, event_id, publisher, event, staged_at, state)
             SELECT 'acme', gen_random_uuid(), '{}', '{}', 0, 'waiting' FROM generate_series(1, {MANY})",
            world.role,
            event("many")
        ))
        .await;
    let (token, tasks) = (CancellationToken::new(), TaskTracker::new());
    let (moving, stop) = (mover(&world.store, &world.clock, Settings::default()), token.clone());
    let mut app = world.app().await;
    let other = domain::TenantId::parse("other").unwrap();
    tasks.spawn(async move { moving.run(stop).await });
    let mut longest = Duration::ZERO;
    for number in 1..=3_u64 {
        // In the middle of the others' events, and of nobody's turn in particular.
        while world.store.head(&world.fixture.tenant).await.unwrap().unwrap().seq.get() < number * 500 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let began = Instant::now();
        publish(&mut app, "other", r#"{"type": "a.b", "audience": ["sam"]}"#).await.unwrap();
        while world.store.head(&other).await.unwrap().unwrap().seq.get() < number {
            assert!(began.elapsed() < Duration::from_secs(10), "the other tenant waits");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        longest = longest.max(began.elapsed());
    }
    let began = Instant::now();
    token.cancel();
    tasks.close();
    tasks.wait().await;
    let left = world.database.number("SELECT count(*) FROM log_staged").await;
    println!(
        "another tenant's event was moved within {longest:?}, {left} rows were left, and the mover ended within {:?}",
        began.elapsed()
    );
    assert!(left > MANY / 2, "{left}: it was to be in the middle");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}
