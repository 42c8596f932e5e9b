//! Administration: who may change what, what is audited, and what the log tells of it.

use std::time::Duration;

use authz::{
    AdminError, AuditDecision, AuditFilter, AuthenticationError, Caller, Denied, DeniedReason, Keyset, Made, NewGrant, NewPrincipal,
    NewTenant, NewToken, Outcome, Permission, PrincipalKind, PrincipalPatch, Role, Scope, Scopes, Settings, TenantState,
};
use serde_json::json;

use crate::world::{World, id, made, new_principal};

const FORBIDDEN: AdminError = AdminError::Denied(Denied::Forbidden(DeniedReason::PermissionMissing));
const HIDDEN: AdminError = AdminError::Denied(Denied::NotFound);

fn all() -> Keyset {
    Keyset { after: None, limit: 1_000 }
}

fn enabled(enabled: bool) -> PrincipalPatch {
    PrincipalPatch { enabled: Some(enabled), ..PrincipalPatch::default() }
}

fn role(role: Role) -> PrincipalPatch {
    PrincipalPatch { role: Some(role), ..PrincipalPatch::default() }
}

async fn operator(world: &World, name: &str) -> Caller {
    world.principal(name, PrincipalKind::Person, Role::Operator).await.0
}

#[tokio::test]
async fn a_member_administers_nobody() {
    let world = World::new().await;
    let (ann, _) = (world.member("ann").await, world.member("bob").await);
    let admin = &world.admin;
    let new = new_principal("eve", PrincipalKind::App, Role::Member);
    assert_eq!(admin.create_principal(&ann, new, None).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.update_principal(&ann, &id("bob"), enabled(false)).await.unwrap_err(), HIDDEN);
    assert_eq!(admin.delete_principal(&ann, &id("nobody")).await.unwrap_err(), HIDDEN, "what exists looks like what does not");
    assert_eq!(admin.update_principal(&ann, &id("ann"), role(Role::Owner)).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.principals(&ann, &all()).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.principal(&ann, &id("bob")).await.unwrap_err(), HIDDEN);
    assert_eq!(admin.principal(&ann, &id("ann")).await.unwrap().id, id("ann"));
    assert_eq!(admin.tokens(&ann, &id("bob"), &all()).await.unwrap_err(), HIDDEN);
    assert_eq!(admin.audit(&ann, &AuditFilter::default(), &all()).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.tenants(&ann, &all()).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.me(&ann).await.unwrap().principal.id, id("ann"));
}

#[tokio::test]
async fn operators_touch_members_and_neither_owners_nor_other_operators() {
    let world = World::new().await;
    let (olga, _) = (operator(&world, "olga").await, operator(&world, "otto").await);
    world.member("ann").await;
    let admin = &world.admin;
    for untouchable in ["owner", "otto"] {
        let name = id(untouchable);
        assert_eq!(admin.update_principal(&olga, &name, enabled(false)).await.unwrap_err(), FORBIDDEN, "{untouchable}");
        assert_eq!(admin.update_principal(&olga, &name, role(Role::Member)).await.unwrap_err(), FORBIDDEN, "{untouchable}");
        assert_eq!(admin.delete_principal(&olga, &name).await.unwrap_err(), FORBIDDEN, "{untouchable}");
        assert_eq!(admin.create_token(&olga, &name, NewToken::default(), None).await.unwrap_err(), FORBIDDEN, "{untouchable}");
        let token = admin.tokens(&olga, &name, &all()).await.unwrap().items[0].id;
        assert_eq!(admin.revoke_token(&olga, &name, token).await.unwrap_err(), FORBIDDEN, "{untouchable}");
    }
    for (name, role) in [("new1", Role::Operator), ("new2", Role::Owner)] {
        let new = new_principal(name, PrincipalKind::Person, role);
        assert_eq!(admin.create_principal(&olga, new, None).await.unwrap_err(), FORBIDDEN, "{name}");
    }
    made(admin.create_principal(&olga, new_principal("eve", PrincipalKind::App, Role::Member), None).await.unwrap());
    made(admin.create_token(&olga, &id("ann"), NewToken::default(), None).await.unwrap());
    for raised in [Role::Operator, Role::Owner] {
        assert_eq!(admin.update_principal(&olga, &id("ann"), role(raised)).await.unwrap_err(), FORBIDDEN);
        if raised == Role::Owner {
            assert_eq!(admin.update_principal(&olga, &id("olga"), role(raised)).await.unwrap_err(), FORBIDDEN);
        }
    }
    assert!(!admin.update_principal(&olga, &id("ann"), enabled(false)).await.unwrap().enabled);
    assert_eq!(admin.update_principal(&olga, &id("olga"), role(Role::Member)).await.unwrap().role, Role::Member);
}

#[tokio::test]
async fn a_demoted_operator_is_one_no_more_even_before_its_memory_knows() {
    let world = World::new().await;
    let olga = operator(&world, "olga").await;
    world.member("ann").await;
    let (elsewhere, owner) = world.elsewhere().await;
    world.start_tail().await;
    world.admin.principals(&olga, &all()).await.unwrap();
    elsewhere.update_principal(&owner, &id("olga"), role(Role::Member)).await.unwrap();
    assert_eq!(world.admin.update_principal(&olga, &id("ann"), enabled(false)).await.unwrap_err(), FORBIDDEN);
}

#[tokio::test]
async fn the_last_enabled_owner_is_neither_disabled_demoted_nor_deleted() {
    let world = World::new().await;
    let (admin, owner) = (&world.admin, &world.owner);
    world.principal("second", PrincipalKind::Person, Role::Owner).await;
    admin.update_principal(owner, &id("second"), enabled(false)).await.unwrap();
    let own = id("owner");
    assert_eq!(admin.update_principal(owner, &own, enabled(false)).await.unwrap_err(), AdminError::LastOwner);
    assert_eq!(admin.update_principal(owner, &own, role(Role::Operator)).await.unwrap_err(), AdminError::LastOwner);
    assert_eq!(admin.delete_principal(owner, &own).await.unwrap_err(), AdminError::LastOwner);
    admin.update_principal(owner, &id("second"), enabled(true)).await.unwrap();
    admin.delete_principal(owner, &own).await.unwrap();
}

#[tokio::test]
async fn everybody_makes_narrower_tokens_for_itself_and_never_wider_ones() {
    let world = World::new().await;
    let (_, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let narrow: Scopes = [Scope::Publish, Scope::Admin].into_iter().collect();
    let ann = world.authorizer.authenticate(token.secret.reveal()).await.unwrap();
    let new = NewToken { scopes: Some(narrow), expires_in: Some(Duration::from_hours(1)) };
    let own = made(world.admin.create_token(&ann, &id("ann"), new, None).await.unwrap());
    let caller = world.authorizer.authenticate(own.secret.reveal()).await.unwrap();
    assert_eq!(caller.scopes, narrow);
    let end = caller.expires_at.unwrap();
    let default = made(world.admin.create_token(&caller, &id("ann"), NewToken::default(), None).await.unwrap());
    assert_eq!((default.record.scopes, default.record.expires_at), (narrow, Some(end)), "as wide and as long as its maker, no more");
    let longer = NewToken { scopes: None, expires_in: Some(Duration::from_hours(2)) };
    let longer = made(world.admin.create_token(&caller, &id("ann"), longer, None).await.unwrap());
    assert_eq!(longer.record.expires_at, Some(end));
    let wider = NewToken { scopes: Some([Scope::Read].into_iter().collect()), expires_in: None };
    let refused = world.admin.create_token(&caller, &id("ann"), wider, None).await.unwrap_err();
    assert_eq!(refused, AdminError::Denied(Denied::Forbidden(DeniedReason::ScopeMissing)));
    world.admin.revoke_token(&caller, &id("ann"), own.record.id).await.unwrap();
    assert_eq!(world.admin.tokens(&ann, &id("ann"), &all()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn the_instance_scope_is_handed_on_only_by_who_has_it() {
    let world = World::new().await;
    world.principal("second", PrincipalKind::Person, Role::Owner).await;
    let admin_only = NewToken { scopes: Some([Scope::Admin].into_iter().collect()), expires_in: None };
    let narrow = world.token("owner", admin_only).await;
    let narrow = world.authorizer.authenticate(narrow.secret.reveal()).await.unwrap();
    let instance = NewToken { scopes: Some([Scope::Instance].into_iter().collect()), expires_in: None };
    let refused = world.admin.create_token(&narrow, &id("second"), instance.clone(), None).await.unwrap_err();
    assert_eq!(refused, AdminError::Denied(Denied::Forbidden(DeniedReason::ScopeMissing)));
    let default = made(world.admin.create_token(&narrow, &id("second"), NewToken::default(), None).await.unwrap());
    assert!(!default.record.scopes.contains(Scope::Instance));
    made(world.admin.create_token(&world.owner, &id("second"), instance, None).await.unwrap());
}

#[tokio::test]
async fn scopes_and_lives_of_tokens_are_validated() {
    let world = World::new().await;
    world.principal("alpha", PrincipalKind::Agent, Role::Member).await;
    let with = |scopes: &[Scope], life| NewToken { scopes: Some(scopes.iter().copied().collect()), expires_in: life };
    let hour = Duration::from_hours(1);
    for (new, pointer) in [
        (with(&[Scope::Read], None), "/scopes"),
        (with(&[], None), "/scopes"),
        (with(&[Scope::Consume], Some(Duration::ZERO)), "/expires_in_seconds"),
        (with(&[Scope::Consume], Some(hour * 24 * 40_000)), "/expires_in_seconds"),
    ] {
        let error = world.admin.create_token(&world.owner, &id("alpha"), new, None).await.unwrap_err();
        assert!(matches!(&error, AdminError::Invalid { pointer: at, .. } if at == pointer), "{error:?}");
    }
    let error = world.admin.create_token(&world.owner, &id("nobody"), NewToken::default(), None).await.unwrap_err();
    assert_eq!(error, AdminError::NotFound);
}

#[tokio::test]
async fn a_principal_has_as_many_live_tokens_as_it_may() {
    let world = World::with_settings(Settings { max_tokens_per_principal: 3, ..Settings::default() }).await;
    let (ann, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    let brief = NewToken { scopes: None, expires_in: Some(Duration::from_secs(1)) };
    made(world.admin.create_token(&ann, &id("ann"), brief, None).await.unwrap());
    made(world.admin.create_token(&ann, &id("ann"), NewToken::default(), None).await.unwrap());
    let name = id("ann");
    let create = || world.admin.create_token(&world.owner, &name, NewToken::default(), None);
    assert_eq!(create().await.unwrap_err(), AdminError::LimitReached("authz.max_tokens_per_principal"));
    world.clock.advance(Duration::from_secs(1));
    made(create().await.unwrap());
    assert!(create().await.is_err());
    world.admin.revoke_token(&world.owner, &id("ann"), token.record.id).await.unwrap();
    made(create().await.unwrap());
}

#[tokio::test]
async fn a_token_of_a_lesser_principal_does_not_rise_with_it() {
    let world = World::new().await;
    let (_, kept) = world.principal("ann", PrincipalKind::Person, Role::Member).await;
    let raise = PrincipalPatch { role: Some(Role::Operator), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), raise).await.unwrap();
    let refused = world.authorizer.authenticate(kept.secret.reveal()).await;
    assert_eq!(refused.unwrap_err(), AuthenticationError::Unauthenticated);
    let fresh = world.token("ann", NewToken::default()).await;
    let lower = PrincipalPatch { role: Some(Role::Member), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), lower).await.unwrap();
    assert_eq!(world.authorizer.authenticate(fresh.secret.reveal()).await.unwrap().role, Role::Member, "lowering keeps them");
}

#[tokio::test]
async fn manage_on_a_space_lets_a_member_keep_its_channels_and_grants_and_nothing_else() {
    let world = World::new().await;
    world.channels(&["support/general", "ops/general"]).await;
    let (ann, _) = (world.member("ann").await, world.member("bob").await);
    let admin = &world.admin;
    let support = "support".parse().unwrap();
    let general = "general".parse().unwrap();
    assert_eq!(admin.create_channel(&ann, &support, "new".parse().unwrap(), None).await.unwrap_err(), HIDDEN);
    world.grant("ann", "support", Permission::Post).await;
    assert_eq!(admin.create_channel(&ann, &support, "new".parse().unwrap(), None).await.unwrap_err(), FORBIDDEN);
    world.grant("ann", "support", Permission::Manage).await;
    made(admin.create_channel(&ann, &support, "new".parse().unwrap(), None).await.unwrap());
    let taken = admin.create_channel(&ann, &support, "new".parse().unwrap(), None).await.unwrap_err();
    assert_eq!(taken, AdminError::AlreadyExists);
    let grant = |resource: &str| NewGrant { principal: id("bob"), resource: resource.parse().unwrap(), permission: Permission::Manage };
    let given = made(admin.create_grant(&ann, grant("support/new"), None).await.unwrap());
    made(admin.create_grant(&ann, grant("support"), None).await.unwrap());
    assert_eq!(admin.create_grant(&ann, grant("*"), None).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.create_grant(&ann, grant("ops"), None).await.unwrap_err(), HIDDEN);
    assert_eq!(admin.create_grant(&ann, grant("support/gone"), None).await.unwrap_err(), HIDDEN);
    admin.revoke_grant(&ann, given.id).await.unwrap();
    assert_eq!(admin.revoke_grant(&ann, given.id).await.unwrap_err(), AdminError::NotFound);
    admin.delete_channel(&ann, &support, &general).await.unwrap();
    assert_eq!(admin.delete_space(&ann, &support).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.create_space(&ann, "more".parse().unwrap(), None).await.unwrap_err(), FORBIDDEN);
    let seen: Vec<_> = admin.spaces(&ann, &all()).await.unwrap().items.into_iter().map(|space| space.id.to_string()).collect();
    assert_eq!(seen, ["support"]);
}

#[tokio::test]
async fn a_grant_of_somebody_else_on_what_one_does_not_manage_cannot_be_probed() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    world.member("bob").await;
    let own = world.grant("ann", "support", Permission::Read).await;
    let other = world.grant("bob", "support", Permission::Read).await;
    assert_eq!(world.admin.revoke_grant(&ann, other.id).await.unwrap_err(), HIDDEN);
    assert_eq!(world.admin.revoke_grant(&ann, own.id).await.unwrap_err(), FORBIDDEN);
    assert_eq!(world.admin.grants(&ann, None, &all()).await.unwrap().items, [own]);
    assert!(world.admin.grants(&ann, Some(&id("bob")), &all()).await.unwrap().items.is_empty());
    assert_eq!(world.admin.grants(&world.owner, None, &all()).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn the_same_grant_twice_is_one_grant() {
    let world = World::new().await;
    world.member("ann").await;
    let first = world.grant("ann", "*", Permission::Read).await;
    let before = world.announced().len();
    let again = NewGrant { principal: id("ann"), resource: "*".parse().unwrap(), permission: Permission::Read };
    let outcome = world.admin.create_grant(&world.owner, again, None).await.unwrap();
    assert_eq!(outcome, Outcome::Done(Made::Present(first)));
    assert_eq!(world.announced().len(), before);
    let nobody = NewGrant { principal: id("nobody"), resource: "*".parse().unwrap(), permission: Permission::Read };
    let error = world.admin.create_grant(&world.owner, nobody, None).await.unwrap_err();
    assert!(matches!(error, AdminError::Invalid { pointer, .. } if pointer == "/principal"));
}

#[tokio::test]
async fn every_change_of_rights_stands_in_the_log_addressed_to_the_principal_concerned() {
    let world = World::new().await;
    let (admin, owner) = (&world.admin, &world.owner);
    world.channels(&["support/general"]).await;
    let (_, token) = world.principal("alpha", PrincipalKind::Agent, Role::Member).await;
    let grant = world.grant("alpha", "support/general", Permission::Read).await;
    admin.revoke_grant(owner, grant.id).await.unwrap();
    world.grant("alpha", "support", Permission::Post).await;
    admin.revoke_token(owner, &id("alpha"), token.record.id).await.unwrap();
    let patch = PrincipalPatch { role: Some(Role::Operator), enabled: Some(false), display_name: Some("Alpha".to_owned()) };
    admin.update_principal(owner, &id("alpha"), patch).await.unwrap();
    admin.update_principal(owner, &id("alpha"), enabled(false)).await.unwrap();
    admin.update_principal(owner, &id("alpha"), enabled(true)).await.unwrap();
    admin.delete_space(owner, &"support".parse().unwrap()).await.unwrap();
    admin.delete_principal(owner, &id("alpha")).await.unwrap();
    let token_id = token.record.id.to_string();
    let agent = |enabled| json!({"id": "alpha", "kind": "agent", "role": "operator", "display_name": "Alpha", "enabled": enabled});
    let expected = [
        ("access.changed", json!({"change": "token.created", "principal": "alpha", "token_id": token_id}), "alpha"),
        (
            "access.changed",
            json!({"change": "grant.created", "principal": "alpha", "resource": "support/general", "permission": "read"}),
            "alpha",
        ),
        (
            "access.changed",
            json!({"change": "grant.revoked", "principal": "alpha", "resource": "support/general", "permission": "read"}),
            "alpha",
        ),
        ("access.changed", json!({"change": "grant.created", "principal": "alpha", "resource": "support", "permission": "post"}), "alpha"),
        ("access.changed", json!({"change": "token.revoked", "principal": "alpha", "token_id": token_id}), "alpha"),
        ("access.changed", json!({"change": "principal.role", "principal": "alpha"}), "alpha"),
        ("access.changed", json!({"change": "principal.disabled", "principal": "alpha"}), "alpha"),
        ("agent.updated", agent(false), "alpha"),
        ("access.changed", json!({"change": "principal.enabled", "principal": "alpha"}), "alpha"),
        ("agent.updated", agent(true), "alpha"),
        ("access.changed", json!({"change": "grant.revoked", "principal": "alpha", "resource": "support", "permission": "post"}), "alpha"),
        ("access.changed", json!({"change": "space.deleted", "principal": "owner", "resource": "support"}), "owner"),
        ("access.changed", json!({"change": "principal.deleted", "principal": "alpha"}), "alpha"),
    ];
    let announced = world.announced();
    assert_eq!(announced.len(), expected.len());
    for ((event_type, payload, audience), (expected_type, expected_payload, concerned)) in announced.into_iter().zip(expected) {
        assert_eq!((event_type.as_str(), &payload), (expected_type, &expected_payload));
        assert_eq!(audience, [id(concerned)]);
    }
}

#[tokio::test]
async fn administrative_changes_are_audited_with_before_and_after_and_without_secrets() {
    let world = World::new().await;
    let (_, token) = world.principal("ann", PrincipalKind::App, Role::Member).await;
    world.admin.update_principal(&world.owner, &id("ann"), enabled(false)).await.unwrap();
    let entries = world.admin.audit(&world.owner, &AuditFilter::default(), &all()).await.unwrap().items;
    let last = &entries[0];
    assert_eq!((last.action.as_str(), last.target.as_str(), last.decision), ("principals.manage", "principal/ann", AuditDecision::Allow));
    assert_eq!(last.actor, Some(id("owner")));
    let before: serde_json::Value = serde_json::from_str(last.before.as_ref().unwrap()).unwrap();
    let after: serde_json::Value = serde_json::from_str(last.after.as_ref().unwrap()).unwrap();
    assert_eq!((&before["enabled"], &after["enabled"]), (&json!(true), &json!(false)));
    let everything = format!("{entries:?}");
    assert!(everything.contains(&token.record.id.to_string()));
    assert!(!everything.contains(token.secret.reveal()));
    let hash = format!("{:?}", token.record.hash.0);
    assert!(!everything.contains(&hash));
}

#[tokio::test]
async fn a_refusal_that_only_the_transaction_finds_is_audited_and_leaves_nothing() {
    let world = World::new().await;
    let olga = operator(&world, "olga").await;
    world.authorizer.flush().await;
    let log = world.announced().len();
    world.admin.update_principal(&olga, &id("owner"), enabled(false)).await.unwrap_err();
    world.authorizer.flush().await;
    let filter = AuditFilter { decision: Some(AuditDecision::Deny), ..AuditFilter::default() };
    let denials = world.admin.audit(&world.owner, &filter, &all()).await.unwrap().items;
    assert_eq!(denials.len(), 1);
    assert_eq!((denials[0].actor.clone(), denials[0].target.as_str()), (Some(id("olga")), "principal/owner"));
    assert_eq!(world.announced().len(), log);
}

#[tokio::test]
async fn principals_are_validated() {
    let world = World::new().await;
    let named = |name: &str, display: &str| NewPrincipal {
        display_name: Some(display.to_owned()),
        ..new_principal(name, PrincipalKind::App, Role::Member)
    };
    for (new, pointer) in [
        (named("ann", ""), "/display_name"),
        (named("ann", &"x".repeat(201)), "/display_name"),
        (named("ann", "a\u{7}b"), "/display_name"),
        (named("server", "fine"), "/id"),
    ] {
        let error = world.admin.create_principal(&world.owner, new, None).await.unwrap_err();
        assert!(matches!(&error, AdminError::Invalid { pointer: at, .. } if at == pointer), "{error:?}");
    }
    made(world.admin.create_principal(&world.owner, named("ann", "Ann ä 😀"), None).await.unwrap());
    let error = world.admin.create_principal(&world.owner, named("ann", "Other"), None).await.unwrap_err();
    assert_eq!(error, AdminError::AlreadyExists);
    assert_eq!(world.admin.principal(&world.owner, &id("ann")).await.unwrap().display_name.as_deref(), Some("Ann ä 😀"));
}

#[tokio::test]
async fn tenants_belong_to_the_owners_of_the_default_tenant() {
    let world = World::new().await;
    let (admin, acme): (_, domain::TenantId) = (&world.admin, "acme".parse().unwrap());
    let new = NewTenant { id: acme.clone(), owner: Some(id("boss")) };
    let created = made(admin.create_tenant(&world.owner, new.clone(), None).await.unwrap());
    assert_eq!(created.owner.id, id("boss"));
    assert_eq!(admin.create_tenant(&world.owner, new, None).await.unwrap_err(), AdminError::AlreadyExists);
    let boss = world.authorizer.authenticate(created.token.secret.reveal()).await.unwrap();
    let another = NewTenant { id: "b".parse().unwrap(), owner: None };
    assert_eq!(admin.create_tenant(&boss, another, None).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.set_tenant_state(&boss, &acme, TenantState::Suspended).await.unwrap_err(), FORBIDDEN);
    assert_eq!(admin.operate(&boss, authz::Action::AdminBackup).await.unwrap_err(), FORBIDDEN);
    admin.operate(&world.owner, authz::Action::AdminBackup).await.unwrap();
    let suspended = admin.set_tenant_state(&world.owner, &acme, TenantState::Suspended).await.unwrap();
    assert_eq!(suspended.state, TenantState::Suspended);
    admin.set_tenant_state(&world.owner, &acme, TenantState::Suspended).await.unwrap();
    admin.set_tenant_state(&world.owner, &acme, TenantState::Active).await.unwrap();
    let told: Vec<_> = world.announced().into_iter().map(|(_, payload, audience)| (payload["change"].clone(), audience)).collect();
    assert_eq!(told, [(json!("tenant.suspended"), vec![id("boss")]), (json!("tenant.resumed"), vec![id("boss")])]);
    let default = "default".parse().unwrap();
    let error = admin.set_tenant_state(&world.owner, &default, TenantState::Suspended).await.unwrap_err();
    assert!(matches!(error, AdminError::Invalid { pointer, .. } if pointer == "/state"));
    assert_eq!(admin.set_tenant_state(&world.owner, &"x".parse().unwrap(), TenantState::Active).await.unwrap_err(), AdminError::NotFound);
    assert_eq!(admin.tenants(&world.owner, &all()).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn listings_come_in_pages_without_gaps_or_repeats() {
    let world = World::new().await;
    let names: Vec<String> = (0..7).map(|number| format!("s{number}/c")).collect();
    world.channels(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let ann = world.member("ann").await;
    for hidden in ["s0", "s3", "s4"] {
        world.grant("ann", hidden, Permission::Read).await;
    }
    for (caller, expected) in [(&world.owner, vec!["s0", "s1", "s2", "s3", "s4", "s5", "s6"]), (&ann, vec!["s0", "s3", "s4"])] {
        for limit in 1..9 {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = world.admin.spaces(caller, &Keyset { after, limit }).await.unwrap();
                assert!(page.items.len() <= limit);
                seen.extend(page.items.into_iter().map(|space| space.id.to_string()));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "limit {limit}");
        }
    }
}
