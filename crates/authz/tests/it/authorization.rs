//! `authorize`: how its memory follows changes, and what it leaves in the audit log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::{Action, Denied, DeniedReason, NewToken, Permission, PrincipalKind, PrincipalPatch, Role, Scope, Target};
use domain::StoreError;
use futures_util::FutureExt;

use crate::world::{World, channel, id, tenant};

const MISSING: Denied = Denied::Forbidden(DeniedReason::PermissionMissing);

#[tokio::test]
async fn what_is_remembered_is_decided_without_yielding() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    world.grant("ann", "support", Permission::Post).await;
    world.start_tail().await;
    let general = channel("support/general");
    world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&general)).await.unwrap();
    world.clock.advance(Duration::from_hours(1));
    world.store.broken.store(true, Ordering::SeqCst);
    let decision = world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&general)).now_or_never();
    assert_eq!(decision, Some(Ok(())));
}

#[tokio::test]
async fn a_grant_made_or_revoked_here_is_in_force_when_its_maker_is_answered() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    let general = channel("support/general");
    let publish = || world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&general));
    world.start_tail().await;
    assert_eq!(publish().await, Err(Denied::NotFound));
    let read = world.grant("ann", "support/general", Permission::Read).await;
    assert_eq!(publish().await, Err(MISSING));
    let post = world.grant("ann", "support", Permission::Post).await;
    assert_eq!(publish().await, Ok(()));
    world.admin.revoke_grant(&world.owner, post.id).await.unwrap();
    assert_eq!(publish().await, Err(MISSING));
    world.admin.revoke_grant(&world.owner, read.id).await.unwrap();
    assert_eq!(publish().await, Err(Denied::NotFound));
}

#[tokio::test]
async fn a_change_elsewhere_is_in_force_once_observed_and_an_unread_change_decides_nothing() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    let grant = world.grant("ann", "*", Permission::Post).await;
    let (admin, owner) = world.elsewhere().await;
    world.start_tail().await;
    let general = channel("support/general");
    let publish = || world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&general));
    assert_eq!(publish().await, Ok(()));
    admin.revoke_grant(&owner, grant.id).await.unwrap();
    let events = world.fresh_events();
    world.store.broken.store(true, Ordering::SeqCst);
    assert_eq!(world.authorizer.observe(&tenant(), &events).await, Err(StoreError::Unavailable));
    assert_eq!(publish().await, Err(Denied::Unavailable), "fail closed");
    world.store.broken.store(false, Ordering::SeqCst);
    world.authorizer.observe(&tenant(), &events).await.unwrap();
    assert_eq!(publish().await, Err(Denied::NotFound));
}

#[tokio::test]
async fn a_revocation_while_rights_are_being_read_is_not_lost() {
    let world = Arc::new(World::new().await);
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    let grant = world.grant("ann", "*", Permission::Post).await;
    let (admin, owner) = world.elsewhere().await;
    world.clock.advance(Duration::from_mins(1));
    let inner = world.clone();
    *world.store.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        admin.revoke_grant(&owner, grant.id).await.unwrap();
        inner.observe().await;
    }));
    let general = channel("support/general");
    let decision = world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&general)).await;
    assert_eq!(decision, Err(Denied::NotFound));
}

#[tokio::test]
async fn a_channel_that_is_gone_is_not_found_even_for_those_who_hold_everything() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    world.start_tail().await;
    let general = channel("support/general");
    let publish = || world.authorizer.authorize(&world.owner, Action::EventsPublish, Target::Channel(&general));
    let other = channel("support/other");
    assert_eq!(world.authorizer.authorize(&world.owner, Action::EventsPublish, Target::Channel(&other)).await, Err(Denied::NotFound));
    assert_eq!(publish().await, Ok(()));
    let (admin, owner) = world.elsewhere().await;
    admin.delete_channel(&owner, &"support".parse().unwrap(), &"general".parse().unwrap()).await.unwrap();
    world.observe().await;
    assert_eq!(publish().await, Err(Denied::NotFound));
    world.channels(&["support/general"]).await;
    assert_eq!(publish().await, Ok(()), "that it did not exist is not remembered");
    admin.delete_space(&owner, &"support".parse().unwrap()).await.unwrap();
    world.observe().await;
    assert_eq!(publish().await, Err(Denied::NotFound));
}

#[tokio::test]
async fn scopes_narrow_a_token() {
    let world = World::new().await;
    let scopes = [Scope::Read].into_iter().collect();
    let token = world.token("owner", NewToken { scopes: Some(scopes), expires_in: None }).await;
    let narrow = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    let authorize = |action, target| world.authorizer.authorize(&narrow, action, target);
    assert_eq!(authorize(Action::EventsRead, Target::Tenant).await, Ok(()));
    assert_eq!(authorize(Action::MeRead, Target::Tenant).await, Ok(()));
    let no_scope = Err(Denied::Forbidden(DeniedReason::ScopeMissing));
    assert_eq!(authorize(Action::EventsPublish, Target::Tenant).await, no_scope);
    assert_eq!(authorize(Action::TenantsManage, Target::Instance).await, no_scope);
    assert_eq!(authorize(Action::PrincipalsManage, Target::Tenant).await, no_scope);
}

#[tokio::test]
async fn a_disabled_principal_and_a_revoked_token_may_nothing() {
    let world = World::new().await;
    let ann = world.member("ann").await;
    let patch = PrincipalPatch { enabled: Some(false), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch).await.unwrap();
    assert_eq!(world.authorizer.authorize(&ann, Action::MeRead, Target::Tenant).await, Err(Denied::Unauthenticated));
}

#[tokio::test]
async fn a_principal_that_the_store_says_is_disabled_may_nothing_although_nobody_reported_it() {
    let world = World::new().await;
    let ann = world.member("ann").await;
    world.store.state.lock().unwrap().principals.get_mut(&(tenant(), id("ann"))).unwrap().enabled = false;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.authorizer.authorize(&ann, Action::MeRead, Target::Tenant).await, Err(MISSING));
}

#[tokio::test]
async fn denied_requests_are_audited_aggregated_and_allowed_ones_are_not() {
    let world = World::new().await;
    let (ann, _) = world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    let before = world.store.state.lock().unwrap().audit.len();
    for _ in 0..50 {
        world.authorizer.authorize(&ann, Action::EventsRead, Target::Tenant).await.unwrap_err();
        world.authorizer.authorize(&ann, Action::MeRead, Target::Tenant).await.unwrap();
    }
    world.authorizer.authorize(&ann, Action::EventsPublish, Target::Channel(&channel("a/b"))).await.unwrap_err();
    world.authorizer.flush().await;
    let audit = world.store.state.lock().unwrap().audit.clone();
    let mut denials: Vec<_> = audit[before..].iter().map(|(_, row)| (row.action.as_str(), row.target.as_str(), row.count)).collect();
    denials.sort_unstable();
    assert_eq!(denials, [("events.publish", "channel/a/b", 1), ("events.read", "tenant", 50)]);
    assert!(audit[before..].iter().all(|(_, row)| row.actor == Some(id("ann")) && row.at.as_micros() % 60_000_000 == 0));
}

#[tokio::test]
async fn a_principal_made_under_a_name_that_was_gone_has_the_new_ones_rights() {
    let world = World::new().await;
    world.start_tail().await;
    let old = world.member("ann").await;
    world.grant("ann", "*", Permission::Post).await;
    world.authorizer.authorize(&old, Action::EventsPublish, Target::Tenant).await.unwrap();
    world.admin.delete_principal(&world.owner, &id("ann")).await.unwrap();
    world.observe().await;
    world.authorizer.authorize(&old, Action::EventsPublish, Target::Tenant).await.unwrap_err();
    let new = world.member("ann").await;
    assert_eq!(world.authorizer.authorize(&new, Action::MeRead, Target::Tenant).await, Ok(()));
    assert_eq!(world.authorizer.authorize(&new, Action::EventsPublish, Target::Tenant).await, Err(MISSING));
    assert!(world.authorizer.authorize(&old, Action::MeRead, Target::Tenant).await.is_err());
}

#[tokio::test]
async fn recipients_are_principals_that_exist_and_are_enabled() {
    let world = World::new().await;
    world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    let ask = async |name| world.authorizer.enabled_kind(&tenant(), &id(name)).await.unwrap();
    assert_eq!(ask("ann").await, Some(PrincipalKind::Agent));
    assert_eq!(ask("nobody").await, None);
    let patch = PrincipalPatch { enabled: Some(false), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch).await.unwrap();
    assert_eq!(ask("ann").await, None);
}
