//! Tokens: who is recognised, and how losing a token reaches those who use it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use authz::{
    AuthenticationError, Caller, NewTenant, NewToken, PrincipalKind, PrincipalPatch, Role, Scope, Scopes, Settings, Standing, TenantState,
    TokenSecret,
};
use domain::Clock;

use crate::world::{World, id, made, tenant};

const ENABLE: PrincipalPatch = PrincipalPatch { enabled: Some(true), role: None, display_name: None };
const DISABLE: PrincipalPatch = PrincipalPatch { enabled: Some(false), role: None, display_name: None };

fn standing(world: &World, caller: &Caller) -> Standing {
    caller.standing(world.clock.now())
}

#[tokio::test]
async fn a_mistyped_token_costs_no_look_into_the_store() {
    let world = World::new().await;
    let before = world.reads();
    for wrong in ["", "dsp_app_", "Bearer x", "dsp_app_0000000000000000000000000000000000000000000000000"] {
        assert_eq!(world.authorizer.authenticate(wrong).await.unwrap_err(), AuthenticationError::Unauthenticated);
    }
    assert_eq!(world.reads(), before);
    let unknown = TokenSecret::generate(PrincipalKind::App).unwrap();
    assert_eq!(world.authorizer.authenticate(unknown.reveal()).await.unwrap_err(), AuthenticationError::Unauthenticated);
    assert_eq!(world.reads(), before + 1);
    assert_eq!(world.authorizer.metrics().authentication_failures.get(), 5);
}

#[tokio::test]
async fn a_known_token_is_not_read_again_while_the_tail_observes() {
    let world = World::new().await;
    world.start_tail().await;
    let token = world.token("owner", NewToken::default()).await;
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    let before = world.reads();
    world.clock.advance(Duration::from_hours(5));
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    assert_eq!(world.reads(), before);
}

#[tokio::test]
async fn a_known_token_lives_for_the_ttl_at_most_while_no_tail_observes() {
    let world = World::new().await;
    let (_, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let (admin, owner) = world.elsewhere().await;
    let caller = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    admin.revoke_token(&owner, &id("ann"), token.record.id).await.unwrap();
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_ok());
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.authorizer.authenticate(token.secret.reveal()).await.unwrap_err(), AuthenticationError::Unauthenticated);
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
}

#[tokio::test]
async fn a_tail_that_stopped_is_not_trusted_any_more() {
    let world = World::new().await;
    let (_, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let (admin, owner) = world.elsewhere().await;
    world.start_tail().await;
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    world.clock.advance(Duration::from_mins(1));
    world.authorizer.tail_stopped(&tenant());
    admin.revoke_token(&owner, &id("ann"), token.record.id).await.unwrap();
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn a_tail_that_starts_reads_anew_what_is_in_use() {
    let world = World::new().await;
    let (caller, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let (admin, owner) = world.elsewhere().await;
    admin.revoke_token(&owner, &id("ann"), token.record.id).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::Good);
    world.start_tail().await;
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
}

#[tokio::test]
async fn revocation_reaches_live_connections_and_later_requests() {
    let world = World::new().await;
    let (caller, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let other = world.token("ann", NewToken::default()).await;
    let other = world.authorizer.authenticate(other.secret.reveal()).await.unwrap();
    world.admin.revoke_token(&world.owner, &id("ann"), token.record.id).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
    assert_eq!(standing(&world, &other), Standing::Good);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn a_revocation_elsewhere_is_in_force_once_the_tail_has_handed_it_over() {
    let world = World::new().await;
    let (caller, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let (admin, owner) = world.elsewhere().await;
    world.start_tail().await;
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    admin.revoke_token(&owner, &id("ann"), token.record.id).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::Good);
    world.observe().await;
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn a_revocation_between_reading_and_remembering_is_not_lost() {
    for tail in [false, true] {
        let world = std::sync::Arc::new(World::new().await);
        let (_, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
        let fresh = world.token("ann", NewToken::default()).await;
        let (admin, owner) = world.elsewhere().await;
        if tail {
            world.start_tail().await;
        }
        let (inner, fresh_id) = (world.clone(), fresh.record.id);
        *world.store.meanwhile.lock().unwrap() = Some(Box::pin(async move {
            admin.revoke_token(&owner, &id("ann"), fresh_id).await.unwrap();
            inner.observe().await;
        }));
        let answer = world.authorizer.authenticate(fresh.secret.reveal()).await;
        assert!(answer.is_err(), "tail: {tail}");
        assert!(world.authorizer.authenticate(fresh.secret.reveal()).await.is_err(), "tail: {tail}");
        assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_ok());
    }
}

#[tokio::test]
async fn a_revocation_during_the_second_reading_is_not_lost_either() {
    let world = std::sync::Arc::new(World::new().await);
    world.member("bob").await;
    let fresh = world.token("owner", NewToken::default()).await;
    let (inner, fresh_id) = (world.clone(), fresh.record.id);
    // Any change between reading and remembering makes it read again; the revocation comes after that second snapshot.
    *world.store.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        inner.grant("bob", "*", authz::Permission::Read).await;
        let innermost = inner.clone();
        *inner.store.meanwhile.lock().unwrap() = Some(Box::pin(async move {
            innermost.admin.revoke_token(&innermost.owner, &id("owner"), fresh_id).await.unwrap();
        }));
    }));
    let answer = world.authorizer.authenticate(fresh.secret.reveal()).await;
    if let Ok(caller) = &answer {
        assert_eq!(standing(&world, caller), Standing::Unauthenticated);
    }
    assert!(world.store.meanwhile.lock().unwrap().is_none(), "both readings happened");
    assert!(world.authorizer.authenticate(fresh.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn disabling_closes_connections_and_enabling_lets_the_same_token_in_again() {
    let world = World::new().await;
    let (caller, token) = world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    world.admin.update_principal(&world.owner, &id("ann"), DISABLE).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
    world.admin.update_principal(&world.owner, &id("ann"), ENABLE).await.unwrap();
    let again = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    assert_eq!(standing(&world, &again), Standing::Good);
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated, "a connection that was closed stays closed");
}

#[tokio::test]
async fn deleting_a_principal_ends_its_tokens() {
    let world = World::new().await;
    let (caller, token) = world.principal("ann", PrincipalKind::Agent, Role::Member).await;
    world.admin.delete_principal(&world.owner, &id("ann")).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn a_token_expires_also_for_a_connection_that_holds_it() {
    let world = World::new().await;
    world.start_tail().await;
    let new = NewToken { expires_in: Some(Duration::from_mins(1)), scopes: None };
    let token = world.token("owner", new).await;
    let caller = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    world.clock.advance(Duration::from_micros(59_999_999));
    assert_eq!(standing(&world, &caller), Standing::Good);
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(standing(&world, &caller), Standing::Unauthenticated);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_err());
}

#[tokio::test]
async fn a_suspended_tenant_is_told_apart_from_a_bad_token() {
    let world = World::new().await;
    let acme: domain::TenantId = "acme".parse().unwrap();
    let new = NewTenant { id: acme.clone(), owner: None };
    let created = made(world.admin.create_tenant(&world.owner, new, None).await.unwrap());
    let secret = created.token.secret.reveal();
    let caller = world.authorizer.authenticate(secret).await.unwrap();
    assert_eq!((caller.tenant.as_str(), caller.role), ("acme", Role::Owner));
    world.admin.set_tenant_state(&world.owner, &acme, TenantState::Suspended).await.unwrap();
    assert_eq!(standing(&world, &caller), Standing::TenantSuspended);
    assert_eq!(world.authorizer.authenticate(secret).await.unwrap_err(), AuthenticationError::TenantSuspended);
    world.admin.set_tenant_state(&world.owner, &acme, TenantState::Active).await.unwrap();
    assert!(world.authorizer.authenticate(secret).await.is_ok());
    assert_eq!(standing(&world, &world.owner), Standing::Good);
}

#[tokio::test]
async fn a_new_role_is_seen_by_the_next_request() {
    let world = World::new().await;
    let (_, token) = world.principal("ann", PrincipalKind::Person, Role::Operator).await;
    let patch = PrincipalPatch { role: Some(Role::Member), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch).await.unwrap();
    let caller = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    assert_eq!(caller.role, Role::Member);
    assert_eq!(standing(&world, &caller), Standing::Good);
}

#[tokio::test]
async fn a_new_role_is_seen_also_when_the_first_look_at_it_failed() {
    let world = World::new().await;
    world.start_tail().await;
    let (_, token) = world.principal("ann", PrincipalKind::Person, Role::Operator).await;
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    let patch = PrincipalPatch { role: Some(Role::Member), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch).await.unwrap();
    world.store.broken.store(true, Ordering::SeqCst);
    world.authorizer.authenticate(token.secret.reveal()).await.unwrap_err();
    world.store.broken.store(false, Ordering::SeqCst);
    assert_eq!(world.authorizer.authenticate(token.secret.reveal()).await.unwrap().role, Role::Member);
}

#[tokio::test]
async fn the_memory_of_tokens_is_bounded_and_keeps_what_is_used() {
    let world = World::with_settings(Settings { token_cache_max: 8, max_tokens_per_principal: 1_000, ..Settings::default() }).await;
    world.start_tail().await;
    let used = world.token("owner", NewToken::default()).await;
    for _ in 0..100 {
        let token = world.token("owner", NewToken::default()).await;
        world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
        world.authorizer.authenticate(used.secret.reveal()).await.unwrap();
    }
    let before = world.reads();
    world.authorizer.authenticate(used.secret.reveal()).await.unwrap();
    assert_eq!(world.reads(), before, "what is used all the time stays");
    let hits = world.authorizer.metrics().token_cache_hits.get();
    assert!(hits >= 100, "{hits}");
}

#[tokio::test]
async fn an_unreachable_store_refuses_nobody_for_good() {
    let world = World::new().await;
    let token = world.token("owner", NewToken::default()).await;
    world.store.broken.store(true, Ordering::SeqCst);
    let failure = world.authorizer.authenticate(token.secret.reveal()).await.unwrap_err();
    assert_eq!(failure, AuthenticationError::Store(domain::StoreError::Unavailable));
    world.store.broken.store(false, Ordering::SeqCst);
    assert!(world.authorizer.authenticate(token.secret.reveal()).await.is_ok());
}

#[tokio::test]
async fn the_first_start_makes_the_owner_once() {
    let world = World::new().await;
    assert!(!world.admin.bootstrap::<authz::AdminError>(|_| Ok(())).await.unwrap());
    let owner = &world.owner;
    assert_eq!(
        (owner.tenant.as_str(), owner.principal.as_str(), owner.kind, owner.role),
        ("default", "owner", PrincipalKind::Person, Role::Owner)
    );
    let expected: Scopes = [Scope::Publish, Scope::Read, Scope::Admin, Scope::Instance].into_iter().collect();
    assert_eq!(owner.scopes, expected);
    assert!(world.announced().is_empty(), "the log of a new tenant begins empty");
}
