//! What is written in the background.

use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::{Action, NewToken, PrincipalKind, Role, Settings, Target};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn denials_and_token_uses_are_written_every_interval_and_once_more_at_the_end() {
    let world = World::new().await;
    let (ann, _) = world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    let denials = || {
        world
            .store
            .state
            .lock()
            .unwrap()
            .audit
            .iter()
            .filter(|(_, row)| row.actor == Some(ann.principal.clone()))
            .map(|(_, row)| row.count)
            .sum::<u64>()
    };
    let token = CancellationToken::new();
    let task = TaskTracker::new().spawn({
        let (authorizer, token) = (world.authorizer.clone(), token.clone());
        async move { authorizer.run(token).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.authorizer.authorize(&ann, Action::EventsRead, Target::Tenant).await.unwrap_err();
    assert_eq!(denials(), 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(denials(), 1);
    assert_eq!(world.store.state.lock().unwrap().uses.len(), 2, "one per token");
    world.authorizer.authorize(&ann, Action::EventsRead, Target::Tenant).await.unwrap_err();
    token.cancel();
    task.await.unwrap();
    assert_eq!(denials(), 2);
}

#[tokio::test]
async fn a_tokens_use_is_noted_once_a_minute() {
    let world = World::new().await;
    let token = world.token("owner", NewToken::default()).await;
    let uses = || {
        let state = world.store.state.lock().unwrap();
        state.uses.iter().filter(|noted| noted.token == token.record.id).count()
    };
    for seconds in 0..150 {
        world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
        world.authorizer.flush().await;
        assert_eq!(uses(), 1 + seconds / 60);
        world.clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn what_the_store_refuses_is_written_later_and_no_count_is_lost() {
    let world = World::new().await;
    let (ann, _) = world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    world.start_tail().await;
    world.authorizer.authorize(&ann, Action::MeRead, Target::Tenant).await.unwrap();
    world.store.broken.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        world.authorizer.authorize(&ann, Action::EventsRead, Target::Tenant).await.unwrap_err();
        world.authorizer.flush().await;
    }
    world.store.broken.store(false, Ordering::SeqCst);
    world.clock.advance(Duration::from_mins(5));
    world.authorizer.flush().await;
    let state = world.store.state.lock().unwrap();
    let counts: Vec<_> = state.audit.iter().filter(|(_, row)| row.actor == Some(ann.principal.clone())).map(|(_, row)| row.count).collect();
    assert_eq!(counts, [3]);
    assert!(!state.uses.is_empty());
}

#[tokio::test(start_paused = true)]
async fn audit_entries_and_answers_go_after_their_retention() {
    let settings = Settings { audit_retention: Duration::from_hours(1), prune_interval: Duration::from_mins(1), ..Settings::default() };
    let world = World::with_settings(settings).await;
    assert!(!world.store.state.lock().unwrap().audit.is_empty());
    world.clock.advance(Duration::from_hours(2));
    let token = CancellationToken::new();
    let task = TaskTracker::new().spawn({
        let (authorizer, token) = (world.authorizer.clone(), token.clone());
        async move { authorizer.run(token).await }
    });
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(world.store.state.lock().unwrap().audit.is_empty());
    token.cancel();
    task.await.unwrap();
}
