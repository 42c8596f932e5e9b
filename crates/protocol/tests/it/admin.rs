//! Bodies of the administration routes on the wire.

use domain::{ChannelId, ChannelRef, DeduplicationKey, EventType, SpaceId, TenantId};
use protocol::admin::{
    AuditDecision, AuditItem, BackupReport, BackupRequest, Channel, Grant, GrantResource, Me, NewChannel, NewGrant, NewPrincipal, NewSpace,
    NewTenant, NewToken, Permission, Principal, PrincipalChange, PrincipalKind, Role, ScheduledItem, ScheduledState, Scope, Space,
    StagedItem, StagedState, Tenant, TenantChange, TenantCreated, TenantState, TokenCreated, TokenItem,
};
use protocol::{DisplayName, Page, Secret, parse_body};
use serde_json::value::RawValue;

use crate::golden::{at, both_ways, epoch, event_id, grant_id, principal, read, seq, token_id};

fn space() -> SpaceId {
    SpaceId::parse("support").unwrap()
}

fn channel() -> ChannelRef {
    ChannelRef::parse("support/general").unwrap()
}

fn tenant() -> Tenant {
    Tenant {
        id: TenantId::parse("acme").unwrap(),
        state: TenantState::Active.into(),
        head_seq: seq(0),
        sync_epoch: epoch(),
        created_at: at("2026-07-12T16:22:03.123Z"),
    }
}

fn token_created() -> TokenCreated {
    TokenCreated {
        token_id: token_id(),
        token: Some(Secret::new("dsp_agent_4fQz".to_owned())),
        secret_shown: false,
        principal: principal("agent_alpha"),
        prefix: "dsp_agent_4f".to_owned(),
        scopes: vec![Scope::Consume.into()],
        created_at: at("2026-07-12T16:22:03.123Z"),
        expires_at: Some(at("2026-10-10T16:22:03.123Z")),
    }
}

#[test]
fn principals_on_the_wire() {
    let name = DisplayName::parse("Agent Alpha".to_owned()).unwrap();
    let new = NewPrincipal {
        kind: PrincipalKind::Agent,
        id: principal("agent_alpha"),
        display_name: Some(name.clone()),
        role: Some(Role::Operator),
    };
    both_ways("admin/new_principal.json", &new);
    both_ways("admin/principal_change.json", &PrincipalChange { display_name: Some(name), enabled: Some(false), role: Some(Role::Member) });
    let item = Principal {
        id: principal("agent_alpha"),
        kind: PrincipalKind::Agent.into(),
        role: Role::Member.into(),
        display_name: Some("Agent Alpha".to_owned()),
        enabled: true,
        created_at: at("2026-07-12T16:22:03.123Z"),
    };
    both_ways("admin/principal_page.json", &Page { items: vec![item], next_cursor: Some("YWdlbnRfYWxwaGE".to_owned()) });
    let me = Me {
        tenant: TenantId::parse("default").unwrap(),
        id: principal("agent_alpha"),
        kind: PrincipalKind::Agent.into(),
        role: Role::Member.into(),
        display_name: None,
        token_id: token_id(),
        scopes: vec![Scope::Consume.into(), Scope::Publish.into()],
        expires_at: None,
    };
    both_ways("admin/me.json", &me);
}

#[test]
fn tokens_on_the_wire_and_a_replay_without_the_secret() {
    both_ways("admin/new_token.json", &NewToken { scopes: Some(vec![Scope::Consume]), expires_in_seconds: 7_776_000.try_into().ok() });
    assert_eq!(parse_body::<NewToken>(b"{}").unwrap(), NewToken::default());
    both_ways("admin/token_created.json", &token_created());
    both_ways("admin/token_replayed.json", &TokenCreated { token: None, secret_shown: true, ..token_created() });
    let item = TokenItem {
        token_id: token_id(),
        prefix: "dsp_agent_4f".to_owned(),
        scopes: vec![Scope::Consume.into()],
        created_at: at("2026-07-12T16:22:03.123Z"),
        expires_at: None,
        last_used_at: Some(at("2026-07-12T17:00:00Z")),
        revoked_at: Some(at("2026-07-12T18:00:00Z")),
    };
    both_ways("admin/token_page.json", &Page { items: vec![item], next_cursor: None });
    assert!(!read("admin/token_page.json").contains("4fQz"));
}

#[test]
fn spaces_channels_and_grants_on_the_wire() {
    both_ways("admin/new_space.json", &NewSpace { id: space() });
    both_ways("admin/space.json", &Space { id: space(), created_at: at("2026-07-12T16:22:03.123Z") });
    let id = ChannelId::parse("general").unwrap();
    both_ways("admin/new_channel.json", &NewChannel { id: id.clone() });
    both_ways("admin/channel.json", &Channel { channel: channel(), space: space(), id, created_at: at("2026-07-12T16:22:03.123Z") });
    let resource = GrantResource::Channel(channel());
    both_ways(
        "admin/new_grant.json",
        &NewGrant { principal: principal("agent_alpha"), resource: resource.clone(), permission: Permission::Read },
    );
    let grant = Grant {
        grant_id: grant_id(),
        principal: principal("agent_alpha"),
        resource,
        permission: Permission::Read.into(),
        created_at: at("2026-07-12T16:22:03.123Z"),
    };
    both_ways("admin/grant.json", &grant);
}

#[test]
fn a_grant_names_everything_a_space_or_a_channel() {
    let read = |text: &str| text.parse::<GrantResource>();
    assert_eq!(read("*"), Ok(GrantResource::All));
    assert_eq!(read("support"), Ok(GrantResource::Space(space())));
    assert_eq!(read("support/general"), Ok(GrantResource::Channel(channel())));
    for bad in ["", "**", "*/x", "support/", "support/*", "a/b/c", "Support"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn tenants_on_the_wire() {
    both_ways("admin/new_tenant.json", &NewTenant { id: TenantId::parse("acme").unwrap(), owner: Some(principal("olga")) });
    both_ways("admin/tenant_change.json", &TenantChange { state: TenantState::Suspended });
    both_ways("admin/tenant.json", &tenant());
    let created = TenantCreated {
        tenant: tenant(),
        owner: principal("olga"),
        token_id: token_id(),
        token: Some(Secret::new("dsp_person_4fQz".to_owned())),
        secret_shown: false,
    };
    both_ways("admin/tenant_created.json", &created);
}

#[test]
fn audit_scheduled_and_backup_on_the_wire() {
    let denial = AuditItem {
        audit_id: "1042".to_owned(),
        at: at("2026-07-12T16:22:00Z"),
        actor: Some(principal("agent_alpha")),
        action: "events.publish".to_owned(),
        target: "support/general".to_owned(),
        decision: AuditDecision::Deny.into(),
        count: 3,
        before: None,
        after: None,
    };
    let change = AuditItem {
        decision: AuditDecision::Allow.into(),
        count: 1,
        before: Some(RawValue::from_string(r#"{"enabled":true}"#.to_owned()).unwrap()),
        after: Some(RawValue::from_string(r#"{"enabled":false}"#.to_owned()).unwrap()),
        ..denial.clone()
    };
    both_ways("admin/audit_page.json", &Page { items: vec![denial, change], next_cursor: Some("MTA0Mg".to_owned()) });
    let waiting = ScheduledItem {
        id: event_id(),
        event_type: EventType::parse("reminder.due").unwrap(),
        channel: Some(channel()),
        audience: vec![],
        deduplication_key: Some(DeduplicationKey::parse("reminder:7").unwrap()),
        publisher: principal("sam"),
        created_at: at("2026-07-12T16:22:03.123Z"),
        available_at: at("2026-07-13T08:00:00Z"),
        state: ScheduledState::Waiting.into(),
        failure: None,
    };
    let failed = ScheduledItem {
        channel: None,
        audience: vec![principal("agent_alpha")],
        deduplication_key: None,
        state: ScheduledState::Failed.into(),
        failure: Some("the channel is gone".to_owned()),
        ..waiting.clone()
    };
    both_ways("admin/scheduled_page.json", &Page { items: vec![waiting, failed], next_cursor: None });
    let failed = StagedItem {
        id: event_id(),
        event_type: Some(EventType::parse("order.placed").unwrap()),
        channel: Some(channel()),
        audience: vec![principal("agent_alpha")],
        deduplication_key: Some(DeduplicationKey::parse("order:7").unwrap()),
        publisher: principal("shop"),
        staged_at: at("2026-07-12T16:22:03.123Z"),
        state: StagedState::Failed.into(),
        failure: Some("The channel does not exist any more.".to_owned()),
    };
    let unread = StagedItem { event_type: None, channel: None, audience: vec![], deduplication_key: None, failure: None, ..failed.clone() };
    both_ways("admin/staged_page.json", &Page { items: vec![failed, unread], next_cursor: Some("7".to_owned()) });
    both_ways("admin/backup_request.json", &BackupRequest { path: "/backups/a.db".to_owned() });
    let report = BackupReport {
        path: "/backups/a.db".to_owned(),
        size_bytes: 104_857_600,
        started_at: at("2026-07-12T16:22:03.123Z"),
        finished_at: at("2026-07-12T16:22:04.456Z"),
    };
    both_ways("admin/backup_report.json", &report);
}

#[test]
fn requests_refuse_unknown_null_and_repeated_members_with_a_pointer() {
    fn pointer<T: serde::de::DeserializeOwned>(body: &str) -> String {
        match parse_body::<T>(body.as_bytes()) {
            Ok(_) => panic!("taken: {body}"),
            Err(refusal) => refusal.pointer,
        }
    }
    assert_eq!(pointer::<NewPrincipal>(r#"{"kind":"agent","id":"a","rôle":"owner"}"#), "/rôle");
    assert_eq!(pointer::<NewPrincipal>(r#"{"kind":"agent","id":"a","display_name":null}"#), "/display_name");
    assert_eq!(pointer::<NewPrincipal>(r#"{"kind":"agent","id":"a","id":"b"}"#), "/id");
    assert_eq!(pointer::<NewPrincipal>(r#"{"kind":"server","id":"a"}"#), "/kind");
    assert_eq!(pointer::<NewPrincipal>(r#"{"kind":"agent","id":"A"}"#), "/id");
    assert_eq!(pointer::<NewPrincipal>(r#"{"id":"a"}"#), "/kind");
    assert_eq!(pointer::<NewPrincipal>(r#"["agent","a"]"#), "");
    assert_eq!(pointer::<NewToken>(r#"{"scopes":["consume","fly"]}"#), "/scopes/1");
    assert_eq!(pointer::<NewToken>(r#"{"expires_in_seconds":0}"#), "/expires_in_seconds");
    assert_eq!(pointer::<NewToken>(r#"{"expires_in_seconds":-1}"#), "/expires_in_seconds");
    assert_eq!(pointer::<NewToken>(r#"{"dpop_jkt":"x"}"#), "/dpop_jkt");
    assert_eq!(pointer::<NewSpace>(r#"{"id":"a/b"}"#), "/id");
    assert_eq!(pointer::<NewChannel>("{}"), "/id");
    assert_eq!(pointer::<NewGrant>(r#"{"principal":"a","resource":"a/b/c","permission":"read"}"#), "/resource");
    assert_eq!(pointer::<NewGrant>(r#"{"principal":"a","resource":"*","permission":"own"}"#), "/permission");
    assert_eq!(pointer::<NewTenant>(r#"{"id":"a","owner":null}"#), "/owner");
    assert_eq!(pointer::<TenantChange>("{}"), "/state");
    assert_eq!(pointer::<PrincipalChange>(r#"{"enabled":"no"}"#), "/enabled");
    assert_eq!(pointer::<BackupRequest>(r#"{"path":1}"#), "/path");
}
