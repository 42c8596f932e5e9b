//! Tenants, principals, tokens, spaces, channels and grants.

use authz::{
    Channel, Grant, IdentityStore, Keyset, Permission, Principal, PrincipalKind, Resource, Role, Scope, Scopes, Space, Tenant, TenantState,
    TokenHash, TokenRecord, TokenUse,
};
use domain::{ChannelId, ChannelRef, ConsumerName, GrantId, PrincipalId, SpaceId, StoreError, SyncEpoch, TenantId, TokenId};
use std::time::Duration;

use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, principal, seq, tenant};

fn id(text: &str) -> PrincipalId {
    PrincipalId::parse(text).unwrap()
}

fn space(text: &str) -> SpaceId {
    SpaceId::parse(text).unwrap()
}

fn after(text: Option<String>, limit: usize) -> Keyset {
    Keyset { after: text, limit }
}

fn all() -> Keyset {
    after(None, 1000)
}

/// One call of an administrative transaction, with what it needs cloned in.
macro_rules! admin {
    ($fixture:expr, |$tx:ident| $call:expr, $($captured:ident),*) => {{
        $(let $captured = $captured.clone();)*
        $fixture.admin(move |$tx| {
            $(let $captured = $captured.clone();)*
            Box::pin(async move { $call.await })
        }).await
    }};
}

fn is_conflict<T: std::fmt::Debug>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Conflict(_)))
}

fn token(fixture: &Fixture, of: &PrincipalId) -> TokenRecord {
    let uuid = fresh();
    let mut hash = [7; 32];
    hash[..16].copy_from_slice(uuid.as_bytes());
    TokenRecord {
        id: TokenId::new(uuid),
        principal: of.clone(),
        hash: TokenHash(hash),
        prefix: "dsp_agent_abcdef".to_owned(),
        scopes: Scopes::from_iter([Scope::Consume, Scope::Publish]),
        created_at: fixture.now(),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

async fn create_token(fixture: &Fixture, token: &TokenRecord) -> Result<(), StoreError> {
    let tenant = &fixture.tenant;
    admin!(fixture, |tx| tx.create_token(&tenant, &token), tenant, token)
}

async fn create_channel(fixture: &Fixture, name: &str) {
    let (parent, child) = name.split_once('/').unwrap();
    let made = Space { id: space(parent), created_at: fixture.now() };
    let channel = Channel { space: space(parent), id: ChannelId::parse(child).unwrap(), created_at: fixture.now() };
    let tenant = &fixture.tenant;
    let _present: Result<(), StoreError> = admin!(fixture, |tx| tx.create_space(&tenant, &made), tenant, made);
    assert_eq!(admin!(fixture, |tx| tx.create_channel(&tenant, &channel), tenant, channel), Ok(true));
}

async fn create_grant(fixture: &Fixture, of: &PrincipalId, resource: &str, permission: Permission) -> Result<Option<Grant>, StoreError> {
    let grant = Grant {
        id: GrantId::new(fresh()),
        principal: of.clone(),
        resource: resource.parse().unwrap(),
        permission,
        created_at: fixture.now(),
    };
    let tenant = &fixture.tenant;
    admin!(fixture, |tx| tx.create_grant(&tenant, &grant), tenant, grant)
}

async fn resources(fixture: &Fixture, of: Option<&PrincipalId>) -> Vec<String> {
    let grants = fixture.store.grants(&fixture.tenant, of, &all()).await.unwrap();
    grants.iter().map(|grant| grant.resource.to_string()).collect()
}

pub(crate) async fn a_tenant_is_created_with_an_empty_log_and_its_epoch(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let made = fixture.create_tenant("new").await;
    assert_eq!(fixture.store.tenant(&made.id).await, Ok(Some(made.clone())));
    assert_eq!(fixture.store.tenant(&tenant("absent")).await, Ok(None));
    let again = Tenant { epoch: SyncEpoch::new(fresh()), ..made.clone() };
    assert!(is_conflict(&admin!(fixture, |tx| tx.create_tenant(&again), again)));
    assert_eq!(fixture.store.tenant(&made.id).await, Ok(Some(made)), "a refusal changes nothing");
}

pub(crate) async fn tenants_are_listed_by_id_with_the_heads_of_their_logs(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["zeta", "beta"] {
        fixture.create_tenant(name).await;
    }
    fixture.fill(2).await;
    let listed = IdentityStore::tenants(&*fixture.store, &all()).await.unwrap();
    let names = |tenants: &[Tenant]| tenants.iter().map(|tenant| tenant.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&listed), ["acme", "beta", "zeta"]);
    assert_eq!((listed[0].head, listed[1].head), (seq(2), seq(0)));
    assert_eq!(names(&IdentityStore::tenants(&*fixture.store, &after(Some("acme".into()), 1)).await.unwrap()), ["beta"]);
}

pub(crate) async fn a_tenants_state_is_changed_and_kept(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.set_state(TenantState::Suspended).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.store.tenant(&fixture.tenant).await.unwrap().unwrap().state, TenantState::Suspended);
    let absent = tenant("absent");
    assert_eq!(admin!(fixture, |tx| tx.set_tenant_state(&absent, TenantState::Active), absent), Ok(false));
}

pub(crate) async fn principals_are_created_changed_and_deleted(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    let sam = Principal {
        role: Role::Operator,
        display_name: Some("Sam \u{1F980}".to_owned()),
        enabled: false,
        ..principal("sam", PrincipalKind::Person, fixture.now())
    };
    assert_eq!(admin!(fixture, |tx| tx.create_principal(&acme, &sam), acme, sam), Ok(()));
    assert!(is_conflict(&admin!(fixture, |tx| tx.create_principal(&acme, &sam), acme, sam)));
    assert_eq!(fixture.store.principal(acme, &sam.id).await, Ok(Some(sam.clone())));
    let mut other = sam.clone();
    (other.role, other.display_name, other.enabled, other.kind) = (Role::Member, None, true, PrincipalKind::Agent);
    assert_eq!(admin!(fixture, |tx| tx.update_principal(&acme, &other), acme, other), Ok(true));
    let expected = Principal { kind: PrincipalKind::Person, ..other };
    assert_eq!(admin!(fixture, |tx| tx.principal(&acme, &sam.id), acme, sam), Ok(Some(expected)), "a kind is for life");
    let gone = &sam.id;
    assert_eq!(admin!(fixture, |tx| tx.delete_principal(&acme, &gone), acme, gone), Ok(true));
    assert_eq!(admin!(fixture, |tx| tx.delete_principal(&acme, &gone), acme, gone), Ok(false));
    assert_eq!(admin!(fixture, |tx| tx.update_principal(&acme, &sam), acme, sam), Ok(false));
    let absent = tenant("absent");
    assert!(is_conflict(&admin!(fixture, |tx| tx.create_principal(&absent, &sam), absent, sam)));
}

pub(crate) async fn principals_are_listed_by_id_behind_an_id(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["c", "a", "b"] {
        fixture.create_principal(name, PrincipalKind::App).await;
    }
    let list = |keyset| {
        let fixture = &fixture;
        async move {
            let listed = fixture.store.principals(&fixture.tenant, &keyset).await.unwrap();
            listed.into_iter().map(|principal| principal.id.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(all()).await, ["a", "b", "c"]);
    assert_eq!(list(after(None, 2)).await, ["a", "b"]);
    assert_eq!(list(after(Some("a".into()), 9)).await, ["b", "c"]);
    assert_eq!(list(after(Some("c".into()), 9)).await, [""; 0]);
}

pub(crate) async fn enabled_owners_are_counted(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    for (name, role, enabled) in [("a", Role::Owner, true), ("b", Role::Owner, false), ("c", Role::Operator, true)] {
        let made = Principal { role, enabled, ..principal(name, PrincipalKind::Person, fixture.now()) };
        admin!(fixture, |tx| tx.create_principal(&acme, &made), acme, made).unwrap();
    }
    assert_eq!(admin!(fixture, |tx| tx.owners(&acme), acme), Ok(1));
}

pub(crate) async fn deleting_a_principal_takes_its_tokens_grants_and_consumers_along(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    let (bot, other) =
        (fixture.create_principal("bot", PrincipalKind::Agent).await, fixture.create_principal("x", PrincipalKind::Agent).await);
    let (mine, theirs) = (token(&fixture, &bot), token(&fixture, &other));
    for token in [&mine, &theirs] {
        create_token(&fixture, token).await.unwrap();
        create_grant(&fixture, &token.principal, "*", Permission::Read).await.unwrap();
        let key = agents::ConsumerKey { tenant: acme.clone(), agent: token.principal.clone(), name: ConsumerName::default() };
        fixture.store.take(&agents::Take { key, holder: agents::Holder::Rest }, 9).await.unwrap();
    }
    assert_eq!(admin!(fixture, |tx| tx.delete_principal(&acme, &bot), acme, bot), Ok(true));
    assert!(fixture.store.credential(&mine.hash).await.unwrap().is_none());
    assert!(fixture.store.tokens(acme, &bot, &all()).await.unwrap().is_empty());
    assert!(fixture.store.list(acme, &bot, None, 9).await.unwrap().is_empty());
    assert_eq!(fixture.store.rights(acme, &bot).await, Ok(None));
    assert_eq!(resources(&fixture, None).await, ["*"], "only the other's is left");
    assert!(fixture.store.credential(&theirs.hash).await.unwrap().is_some());
    assert_eq!(fixture.store.list(acme, &other, None, 9).await.unwrap().len(), 1);
}

pub(crate) async fn a_credential_has_all_that_authenticating_needs_whatever_the_states(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let bot = fixture.create_principal("bot", PrincipalKind::Agent).await;
    let mut made = token(&fixture, &bot);
    made.expires_at = Some(fixture.now());
    create_token(&fixture, &made).await.unwrap();
    fixture.set_state(TenantState::Suspended).await;
    let credential = fixture.store.credential(&made.hash).await.unwrap().unwrap();
    assert_eq!((credential.tenant, credential.tenant_state), (fixture.tenant.clone(), TenantState::Suspended));
    assert_eq!((credential.token, credential.principal.id), (made.clone(), bot));
    assert!(fixture.store.credential(&TokenHash([0; 32])).await.unwrap().is_none());
    assert!(is_conflict(&create_token(&fixture, &made).await));
    let orphan = token(&fixture, &id("ghost"));
    assert!(is_conflict(&create_token(&fixture, &orphan).await));
}

pub(crate) async fn live_tokens_are_neither_revoked_nor_expired(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (acme, bot) = (&fixture.tenant, &fixture.create_principal("bot", PrincipalKind::Agent).await);
    let now = fixture.now();
    let later = now.plus(Duration::from_micros(1));
    let (forever, ending, revoked) = (token(&fixture, bot), token(&fixture, bot), token(&fixture, bot));
    let ending = TokenRecord { expires_at: Some(later), ..ending };
    for token in [&forever, &ending, &revoked] {
        create_token(&fixture, token).await.unwrap();
    }
    let revoked = revoked.id;
    assert_eq!(admin!(fixture, |tx| tx.revoke_token(&acme, &bot, revoked, now), acme, bot), Ok(true));
    assert_eq!(admin!(fixture, |tx| tx.revoke_token(&acme, &bot, revoked, later), acme, bot), Ok(false), "once");
    let other = id("other");
    let forever = forever.id;
    assert_eq!(admin!(fixture, |tx| tx.revoke_token(&acme, &other, forever, now), acme, other), Ok(false), "not its token");
    assert_eq!(admin!(fixture, |tx| tx.live_tokens(&acme, &bot, now), acme, bot), Ok(2));
    assert_eq!(admin!(fixture, |tx| tx.live_tokens(&acme, &bot, later), acme, bot), Ok(1));
    let listed = fixture.store.tokens(acme, bot, &all()).await.unwrap();
    assert_eq!(listed.iter().map(|token| token.revoked_at).collect::<Vec<_>>(), [None, None, Some(now)]);
}

pub(crate) async fn all_tokens_of_a_principal_are_revoked_at_once_and_each_is_told_once(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    let (bot, other) =
        (fixture.create_principal("bot", PrincipalKind::Agent).await, fixture.create_principal("x", PrincipalKind::Agent).await);
    let (one, two, theirs) = (token(&fixture, &bot), token(&fixture, &bot), token(&fixture, &other));
    let before = TokenRecord { revoked_at: Some(fixture.now()), ..token(&fixture, &bot) };
    for token in [&one, &two, &before, &theirs] {
        create_token(&fixture, token).await.unwrap();
    }
    let at = fixture.now().plus(Duration::from_secs(1));
    let mut revoked = admin!(fixture, |tx| tx.revoke_tokens(&acme, &bot, at), acme, bot).unwrap();
    revoked.sort();
    assert_eq!(revoked, [one.id, two.id]);
    assert_eq!(admin!(fixture, |tx| tx.revoke_tokens(&acme, &bot, at), acme, bot), Ok(Vec::new()));
    let instants: Vec<_> = fixture.store.tokens(acme, &bot, &all()).await.unwrap().iter().map(|token| token.revoked_at).collect();
    assert_eq!(instants, [Some(at), Some(at), before.revoked_at]);
    assert_eq!(fixture.store.credential(&theirs.hash).await.unwrap().unwrap().token.revoked_at, None);
}

pub(crate) async fn tokens_are_listed_in_creation_order_behind_an_id(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let bot = fixture.create_principal("bot", PrincipalKind::Agent).await;
    let made: Vec<_> = (0..3).map(|_| token(&fixture, &bot)).collect();
    for token in made.iter().rev() {
        create_token(&fixture, token).await.unwrap();
    }
    let list = |keyset: Keyset| {
        let (fixture, bot) = (&fixture, &bot);
        async move { fixture.store.tokens(&fixture.tenant, bot, &keyset).await.unwrap() }
    };
    assert_eq!(list(all()).await, made);
    assert_eq!(list(after(None, 1)).await, made[..1]);
    assert_eq!(list(after(Some(made[0].id.to_string()), 9)).await, made[1..]);
    assert_eq!(list(after(Some("no id".into()), 9)).await, []);
}

pub(crate) async fn uses_of_tokens_are_noted_and_the_later_one_wins(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let bot = fixture.create_principal("bot", PrincipalKind::Agent).await;
    let made = token(&fixture, &bot);
    create_token(&fixture, &made).await.unwrap();
    let used = |seconds| TokenUse { tenant: fixture.tenant.clone(), token: made.id, at: fixture.now().plus(Duration::from_secs(seconds)) };
    let unknown = TokenUse { token: TokenId::new(fresh()), ..used(0) };
    fixture.store.touch_tokens(&[used(5), unknown, used(9), used(7)]).await.unwrap();
    fixture.store.touch_tokens(&[used(1)]).await.unwrap();
    let stored = fixture.store.credential(&made.hash).await.unwrap().unwrap().token;
    assert_eq!(stored.last_used_at, Some(used(9).at));
}

pub(crate) async fn spaces_and_channels_are_created_once_and_listed_by_id(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    for name in ["b/two", "a/x", "b/one"] {
        create_channel(&fixture, name).await;
    }
    let made = Space { id: space("a"), created_at: fixture.now() };
    assert!(is_conflict(&admin!(fixture, |tx| tx.create_space(&acme, &made), acme, made)));
    let present = Channel { space: space("a"), id: ChannelId::parse("x").unwrap(), created_at: fixture.now() };
    assert!(is_conflict(&admin!(fixture, |tx| tx.create_channel(&acme, &present), acme, present)));
    let orphan = Channel { space: space("nowhere"), ..present };
    assert_eq!(admin!(fixture, |tx| tx.create_channel(&acme, &orphan), acme, orphan), Ok(false));
    let spaces = fixture.store.spaces(acme, &all()).await.unwrap();
    assert_eq!(spaces.iter().map(|space| space.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(fixture.store.spaces(acme, &after(Some("a".into()), 9)).await.unwrap().len(), 1);
    let channels = fixture.store.channels(acme, &space("b"), &all()).await.unwrap().unwrap();
    assert_eq!(channels.iter().map(|channel| channel.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(fixture.store.channels(acme, &space("b"), &after(Some("one".into()), 9)).await.unwrap().unwrap().len(), 1);
    assert_eq!(fixture.store.channels(acme, &space("nowhere"), &all()).await, Ok(None));
    for (name, expected) in [("b/one", true), ("b/x", false)] {
        assert_eq!(fixture.store.channel_exists(acme, &ChannelRef::parse(name).unwrap()).await, Ok(expected), "{name}");
    }
}

pub(crate) async fn resources_exist_when_they_were_created(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    create_channel(&fixture, "a/x").await;
    for (text, expected) in [("*", true), ("a", true), ("b", false), ("a/x", true), ("a/y", false)] {
        let (acme, resource) = (&fixture.tenant, &text.parse::<Resource>().unwrap());
        assert_eq!(admin!(fixture, |tx| tx.resource_exists(&acme, &resource), acme, resource), Ok(expected), "{text}");
    }
}

pub(crate) async fn deleting_a_space_takes_its_channels_and_the_grants_on_them_along(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (acme, bot) = (&fixture.tenant, fixture.create_principal("bot", PrincipalKind::Agent).await);
    for name in ["a/x", "a/y", "ab/x", "a-b/x"] {
        create_channel(&fixture, name).await;
    }
    for resource in ["*", "a", "a/x", "a/y", "ab", "ab/x", "a-b", "a-b/x"] {
        create_grant(&fixture, &bot, resource, Permission::Read).await.unwrap();
    }
    let gone = space("a");
    let deleted = admin!(fixture, |tx| tx.delete_space(&acme, &gone), acme, gone).unwrap().unwrap();
    assert_eq!(deleted.iter().map(|grant| grant.resource.to_string()).collect::<Vec<_>>(), ["a", "a/x", "a/y"]);
    assert_eq!(resources(&fixture, None).await, ["*", "ab", "ab/x", "a-b", "a-b/x"]);
    assert_eq!(fixture.store.channels(acme, &gone, &all()).await, Ok(None));
    assert!(!fixture.store.channel_exists(acme, &ChannelRef::parse("a/x").unwrap()).await.unwrap());
    assert_eq!(admin!(fixture, |tx| tx.delete_space(&acme, &gone), acme, gone), Ok(None));
}

pub(crate) async fn deleting_a_channel_takes_the_grants_on_it_along(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (acme, bot) = (&fixture.tenant, fixture.create_principal("bot", PrincipalKind::Agent).await);
    create_channel(&fixture, "a/x").await;
    create_channel(&fixture, "a/xx").await;
    for resource in ["a", "a/x", "a/xx"] {
        create_grant(&fixture, &bot, resource, Permission::Post).await.unwrap();
    }
    let (parent, child) = (space("a"), ChannelId::parse("x").unwrap());
    let deleted = admin!(fixture, |tx| tx.delete_channel(&acme, &parent, &child), acme, parent, child).unwrap().unwrap();
    assert_eq!(deleted.iter().map(|grant| grant.resource.to_string()).collect::<Vec<_>>(), ["a/x"]);
    assert_eq!(resources(&fixture, None).await, ["a", "a/xx"]);
    assert_eq!(admin!(fixture, |tx| tx.delete_channel(&acme, &parent, &child), acme, parent, child), Ok(None));
}

pub(crate) async fn the_same_grant_twice_answers_the_present_one(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let (acme, bot) = (&fixture.tenant, fixture.create_principal("bot", PrincipalKind::Agent).await);
    assert_eq!(create_grant(&fixture, &bot, "a", Permission::Read).await, Ok(None));
    let present = create_grant(&fixture, &bot, "a", Permission::Read).await.unwrap().unwrap();
    assert_eq!(create_grant(&fixture, &bot, "a", Permission::Post).await, Ok(None), "another permission is another grant");
    let listed = fixture.store.grants(acme, Some(&bot), &all()).await.unwrap();
    assert_eq!((listed.len(), &listed[0]), (2, &present));
    let grant = present.id;
    assert_eq!(admin!(fixture, |tx| tx.grant(&acme, grant), acme), Ok(Some(present.clone())));
    assert_eq!(admin!(fixture, |tx| tx.delete_grant(&acme, grant), acme), Ok(Some(present)));
    assert_eq!(admin!(fixture, |tx| tx.delete_grant(&acme, grant), acme), Ok(None));
    assert_eq!(admin!(fixture, |tx| tx.grant(&acme, grant), acme), Ok(None));
    assert!(is_conflict(&create_grant(&fixture, &id("ghost"), "a", Permission::Read).await));
}

pub(crate) async fn grants_are_listed_in_creation_order_behind_an_id(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    let (one, two) = (fixture.create_principal("one", PrincipalKind::App).await, fixture.create_principal("two", PrincipalKind::App).await);
    for (of, resource) in [(&one, "z"), (&two, "y"), (&one, "x")] {
        create_grant(&fixture, of, resource, Permission::Read).await.unwrap();
    }
    assert_eq!(resources(&fixture, None).await, ["z", "y", "x"]);
    assert_eq!(resources(&fixture, Some(&one)).await, ["z", "x"]);
    let first = fixture.store.grants(acme, None, &after(None, 1)).await.unwrap().remove(0);
    let rest = fixture.store.grants(acme, None, &after(Some(first.id.to_string()), 9)).await.unwrap();
    assert_eq!(rest.len(), 2);
    let rest = fixture.store.grants(acme, Some(&one), &after(Some(first.id.to_string()), 9)).await.unwrap();
    assert_eq!(rest[0].resource.to_string(), "x");
}

pub(crate) async fn rights_are_the_principals_with_its_grants(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let bot = fixture.create_principal("bot", PrincipalKind::Agent).await;
    create_grant(&fixture, &bot, "a/x", Permission::Post).await.unwrap();
    create_grant(&fixture, &bot, "*", Permission::Read).await.unwrap();
    let rights = fixture.store.rights(&fixture.tenant, &bot).await.unwrap().unwrap();
    assert_eq!((rights.principal, rights.kind, rights.role, rights.enabled), (bot, PrincipalKind::Agent, Role::Member, true));
    let expected = [(Resource::All, Permission::Read), ("a/x".parse().unwrap(), Permission::Post)];
    assert_eq!(rights.grants, expected);
    assert_eq!(fixture.store.rights(&fixture.tenant, &id("ghost")).await, Ok(None));
}

pub(crate) async fn names_of_two_tenants_do_not_touch(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let other: TenantId = fixture.create_tenant("other").await.id;
    fixture.create_principal("bot", PrincipalKind::Agent).await;
    create_channel(&fixture, "a/x").await;
    assert_eq!(fixture.store.principal(&other, &id("bot")).await, Ok(None));
    assert!(!fixture.store.channel_exists(&other, &ChannelRef::parse("a/x").unwrap()).await.unwrap());
    let made = principal("bot", PrincipalKind::App, fixture.now());
    assert_eq!(admin!(fixture, |tx| tx.create_principal(&other, &made), other, made), Ok(()));
    assert_eq!(fixture.store.principal(&fixture.tenant, &id("bot")).await.unwrap().unwrap().kind, PrincipalKind::Agent);
}

pub(crate) async fn events_of_administration_are_appended_with_the_change_that_they_tell_of(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let acme = &fixture.tenant;
    fixture.fill(2).await;
    let change = |event: domain::Publication, created_at, keep: bool| {
        let tenant = acme.clone();
        fixture.admin(move |tx| {
            let (tenant, event) = (tenant.clone(), event.clone());
            Box::pin(async move {
                let before = tx.head(&tenant).await?;
                tx.create_space(&tenant, &Space { id: space("s"), created_at }).await?;
                let appended = tx.append_access(&tenant, &[event]).await?;
                let after = tx.head(&tenant).await?;
                if keep { Ok((before, appended, after)) } else { Err(StoreError::Conflict("on purpose")) }
            })
        })
    };
    assert_eq!(change(fixture.event("x"), fixture.now(), false).await, Err(StoreError::Conflict("on purpose")));
    assert_eq!((fixture.head().await, fixture.store.spaces(acme, &all()).await.unwrap().len()), (2, 0));
    let event = fixture.event("x");
    let new = domain::Appended::New { seq: seq(3), id: event.id };
    assert_eq!(change(event, fixture.now(), true).await, Ok((seq(2), vec![new], seq(3))));
    assert_eq!((fixture.head().await, fixture.store.spaces(acme, &all()).await.unwrap().len()), (3, 1));
    fixture.set_state(TenantState::Suspended).await;
    let (tenant, event) = (acme.clone(), fixture.event("y"));
    assert_eq!(
        admin!(fixture, |tx| tx.append_access(&tenant, std::slice::from_ref(&event)), tenant, event),
        Err(StoreError::TenantInactive)
    );
}
