//! A store with something of everything in it, and everything that its ports tell: for stores that are copied whole.

#![expect(missing_docs, reason = "the names say it; nobody but a case reads them")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use ::hooks::{
    AttemptClass, Generation as GroupGeneration, HookKey, HookKind, HookStore, KeyMaterial, LogPosition, PublicKey, Sealed, ServerKey,
};
use agents::{ConsumerKey, Holder, InFlight, RestWindow, Take, WindowWrite};
use authz::{
    AuditDecision, AuditEntry, AuditFilter, Channel, Grant, IdempotentAnswer, IdentityStore, Keyset, Permission, PrincipalKind, Scope,
    Scopes, Space, TenantState, TokenHash, TokenRecord,
};
use domain::{AgentSessionId, ChannelId, ConsumerName, EventId, GrantId, Publication, SessionId, SpaceId, TokenId};
use inbox::{
    AgentSession, ClaimRecord, Concurrency, Generation, ItemFilter, LeaseKey, Policy, PollRange, Presence, QueueFilter, Release, Report,
    Rules,
};
use intake::Schedule;
use sync::LogStore;

use super::hooks::{EVERY_GROUP, attempt_of, hook_of, key_id, ring_at, secret};
use super::inbox::{MINUTE, agent, part, queue};
use crate::conformance::support::{Fixture, fresh, seq};

pub const TOKEN: TokenHash = TokenHash([7; 32]);

/// Puts something into each table: rows in every state, values that are absent and values that are not.
pub async fn fill(fixture: &Fixture) {
    fixture.create_tenant("acme").await;
    identities(fixture).await;
    inboxes(fixture).await;
    // What is retired leaves its envelope to the items that need it; what comes after stays in the log.
    fixture.retire_log().await;
    fixture.create_tenant("other").await;
    fixture.create_tenant("quiet").await;
    fixture.set_state_of(&crate::conformance::support::tenant("quiet"), TenantState::Suspended).await;
    log(fixture).await;
    consumers(fixture).await;
    hooks(fixture).await;
}

async fn identities(fixture: &Fixture) {
    for (name, kind) in
        [("alpha", PrincipalKind::Agent), ("beta", PrincipalKind::Agent), ("sam", PrincipalKind::Person), ("app", PrincipalKind::App)]
    {
        fixture.create_principal(name, kind).await;
    }
    let (tenant, now) = (fixture.tenant.clone(), fixture.now());
    let token = |hash: [u8; 32], expires_at| TokenRecord {
        id: TokenId::new(fresh()),
        principal: agent("alpha"),
        hash: TokenHash(hash),
        prefix: "dsp_agent_abcdef".to_owned(),
        scopes: Scopes::from_iter([Scope::Consume, Scope::Publish]),
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let (first, second) = (token(TOKEN.0, None), token([8; 32], Some(now.plus(MINUTE))));
    let grant = |resource: &str| Grant {
        id: GrantId::new(fresh()),
        principal: agent("alpha"),
        resource: resource.parse().unwrap(),
        permission: Permission::Read,
        created_at: now,
    };
    let (all, one) = (grant("*"), grant("s/c"));
    let entry = AuditEntry {
        id: 0,
        at: now,
        actor: Some(agent("sam")),
        action: "grants.manage".to_owned(),
        target: "s/c".to_owned(),
        decision: AuditDecision::Allow,
        count: 1,
        before: None,
        after: Some("{}".to_owned()),
    };
    let denial = AuditEntry { actor: None, decision: AuditDecision::Deny, after: None, ..entry.clone() };
    let unit = fixture.admin(move |tx| {
        let (tenant, first, second, all, one, entry) =
            (tenant.clone(), first.clone(), second.clone(), all.clone(), one.clone(), entry.clone());
        Box::pin(async move {
            let (space, channel) = (SpaceId::parse("s").unwrap(), ChannelId::parse("c").unwrap());
            tx.create_space(&tenant, &Space { id: space.clone(), created_at: now }).await?;
            tx.create_channel(&tenant, &Channel { space, id: channel, created_at: now }).await?;
            tx.create_token(&tenant, &first).await?;
            tx.create_token(&tenant, &second).await?;
            tx.revoke_token(&tenant, &agent("alpha"), second.id, now).await?;
            tx.create_grant(&tenant, &all).await?;
            tx.create_grant(&tenant, &one).await?;
            tx.audit(&tenant, &entry).await?;
            let answer = IdempotentAnswer { request_hash: [9; 32], status: 201, body: "{}".to_owned() };
            tx.store_answer(&tenant, &agent("sam"), "key", &answer, now, now).await
        })
    });
    unit.await.unwrap();
    fixture.store.record_denials(&[(fixture.tenant.clone(), denial)]).await.unwrap();
}

/// Items in every state, of which several wait for an envelope that leaves the log.
async fn inboxes(fixture: &Fixture) {
    let rules = Rules::default();
    let mut work = fixture.work(&["alpha/review", "beta"]);
    (work.expires_at, work.source) = (Some(fixture.now().plus(MINUTE * 90)), Some("tests".to_owned()));
    let job = Publication { deduplication: fixture.keyed("job", "a").deduplication, ..fixture.job_of(work) };
    let (both, _) = fixture.publish(job).await;
    fixture.finish("beta", both).await;
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(fixture.publish_job(&["alpha"]).await.0);
    }
    fixture.claim("alpha", events[0], MINUTE * 60).await;
    let mut resting = fixture.claim("alpha", events[1], MINUTE).await;
    let report = Report { summary: Some("later".to_owned()), result: None };
    resting.release(fixture.now(), &Release::Counted { rest: Some(MINUTE) }, report, &rules).unwrap();
    fixture.put(vec![resting]).await.unwrap();
    let mut aside = fixture.find("alpha", &[events[2]]).await.remove(0).unwrap();
    aside.quarantine(fixture.now(), &rules).unwrap();
    fixture.put(vec![aside]).await.unwrap();
    fixture.finish("alpha", events[3]).await;

    let now = fixture.now();
    let (row, tenant, recipient) = (fixture.opened("beta").await, fixture.tenant.clone(), fixture.recipient("alpha"));
    let session = AgentSession {
        id: AgentSessionId::parse("sess_1").unwrap(),
        recipient,
        device: Some("laptop".to_owned()),
        transport: "sse".to_owned(),
        connected_at: now,
        heartbeat_at: now,
        last_seen: seq(3),
        token: TokenId::new(fresh()),
        is_active: true,
    };
    let mut changed = row.clone();
    (changed.presence, changed.paused) = (Presence::Out { until: Some(now.plus(MINUTE)) }, true);
    changed.paused_queues = BTreeSet::from([queue("review")]);
    changed.policy = Policy { max_in_flight: Some(3), concurrency: Concurrency::SingleActiveSession };
    changed.next_due = Some(now.plus(MINUTE));
    let record = ClaimRecord { request_hash: [1; 32], claims: vec![(events[0], Generation::new(1))], created_at: now };
    let unit = fixture.inbox(move |tx| {
        let (tenant, session, changed, record) = (tenant.clone(), session.clone(), changed.clone(), record.clone());
        Box::pin(async move {
            let found = tx.recipient(&changed.recipient).await?.unwrap();
            tx.lease_key(&tenant, &LeaseKey::new([5; 32])).await?;
            tx.put_claim_record(found.number, "claim", &record).await?;
            tx.put_session(&session).await?;
            tx.save_recipient(&changed).await
        })
    });
    unit.await.unwrap();
}

async fn log(fixture: &Fixture) {
    fixture.fill(3).await;
    fixture.clock.advance(Duration::from_hours(30));
    fixture.append(vec![fixture.keyed("k", "a")]).await.unwrap();
    fixture.publish_job(&["beta"]).await;
    let now = fixture.now();
    let waiting = |publication, minutes| Schedule { publication, publisher: agent("sam"), available_at: now.plus(MINUTE * minutes) };
    let job = Publication { channel: None, ..fixture.job(&["alpha"]) };
    let schedules = [waiting(fixture.keyed("later", "a"), 5), waiting(job, 6), waiting(fixture.event("x"), 7)];
    let tenant = fixture.tenant.clone();
    let unit = fixture.publish_tx(move |tx| {
        let (tenant, schedules) = (tenant.clone(), schedules.clone());
        Box::pin(async move {
            for schedule in &schedules {
                tx.schedule(&tenant, schedule).await?;
            }
            tx.fail(&tenant, schedules[2].publication.id, "its channel is gone").await
        })
    });
    assert_eq!(unit.await, Ok(true));
}

pub fn consumer(name: &str) -> ConsumerKey {
    ConsumerKey { tenant: crate::conformance::support::tenant("acme"), agent: agent("alpha"), name: ConsumerName::parse(name).unwrap() }
}

async fn consumers(fixture: &Fixture) {
    let gateway = Holder::Gateway(SessionId::new(fresh()));
    fixture.store.take(&Take { key: consumer("stream"), holder: gateway }, 9).await.unwrap();
    let taken = fixture.store.take(&Take { key: consumer("polls"), holder: Holder::Rest }, 9).await.unwrap();
    let in_flight =
        vec![InFlight { seq: taken.head, dispatched_at: fixture.now() }, InFlight { seq: taken.head.next(), dispatched_at: fixture.now() }];
    let window =
        RestWindow { read: taken.head, page_first: taken.head, highest_sent: taken.head.next(), in_flight, ..RestWindow::default() };
    let write = WindowWrite { key: consumer("polls"), expected_version: taken.row.window_version, window };
    assert_eq!(fixture.store.write_window(&write).await, Ok(true));
}

async fn hooks(fixture: &Fixture) {
    let now = fixture.now();
    let hook = fixture.hook_for("alpha").await;
    let callback = ::hooks::Hook {
        kind: HookKind::Callback,
        queues: vec![queue("review")],
        max_rate_per_minute: Some(6),
        ..hook_of(&fixture.tenant, "beta", now)
    };
    fixture.create_hook(&callback).await.unwrap();
    fixture.put_key(hook.id, &secret("a", b"\x00sealed\xff", now)).await.unwrap();
    let public = HookKey {
        material: KeyMaterial::Public(PublicKey::Ed25519(vec![7; 32])),
        expires_at: Some(now.plus(MINUTE)),
        ..secret("b", b"", now)
    };
    fixture.put_key(callback.id, &public).await.unwrap();
    let (one, two) = (ring_at(&hook, 6, now.plus(MINUTE)), ring_at(&hook, 7, now.plus(MINUTE * 2)));
    fixture.add(&[one.clone(), two]).await.unwrap();
    fixture.log_attempts(vec![(hook.id, attempt_of(&one, 1, AttemptClass::Timeout))], 9).await.unwrap();
    let key = ServerKey { id: key_id("server"), public: vec![3; 32], pair: Sealed::from_bytes(vec![4; 9]), signs_from: now };
    let (tenant, head) = (fixture.tenant.clone(), fixture.store.head(&fixture.tenant).await.unwrap().unwrap());
    let group = HookStore::tenants(&*fixture.store, &EVERY_GROUP, None, 9).await.unwrap()[0].group;
    let unit = fixture.hook_tx(move |tx| {
        let (tenant, key) = (tenant.clone(), key.clone());
        Box::pin(async move {
            tx.put_server_key(&key).await?;
            let generation: GroupGeneration = tx.take_group(group).await?;
            tx.advance(&tenant, group, generation, LogPosition { epoch: head.epoch, seq: head.seq }).await
        })
    });
    assert_eq!(unit.await, Ok(true));
}

/// Everything that the reading ports tell of the store, as text. Numbers that a store gives its inboxes are its own.
pub async fn told(fixture: &Fixture) -> String {
    let mut out = String::new();
    let all = Keyset { after: None, limit: 1000 };
    let store = &fixture.store;
    for tenant in IdentityStore::tenants(&**store, &all).await.unwrap() {
        writeln!(out, "{tenant:?} {:?}", LogStore::head(&**store, &tenant.id).await.unwrap()).unwrap();
        writeln!(out, "{:?}", store.spaces(&tenant.id, &all).await.unwrap()).unwrap();
        writeln!(out, "{:?}", store.channels(&tenant.id, &SpaceId::parse("s").unwrap(), &all).await.unwrap()).unwrap();
        writeln!(out, "{:?}", store.audit(&tenant.id, &AuditFilter::default(), &all).await.unwrap()).unwrap();
        writeln!(out, "{:?}", store.scheduled(&tenant.id, None, None, 1000).await.unwrap()).unwrap();
        for principal in store.principals(&tenant.id, &all).await.unwrap() {
            writeln!(out, "{principal:?} {:?}", store.rights(&tenant.id, &principal.id).await.unwrap()).unwrap();
            writeln!(out, "{:?}", store.tokens(&tenant.id, &principal.id, &all).await.unwrap()).unwrap();
            writeln!(out, "{:?}", store.list(&tenant.id, &principal.id, None, 1000).await.unwrap()).unwrap();
        }
    }
    writeln!(out, "{:?}", store.credential(&TOKEN).await.unwrap()).unwrap();
    writeln!(
        out,
        "{:?}",
        store.idempotent_answer(&fixture.tenant, &agent("sam"), "key", fixture.now().minus(MINUTE * 6000)).await.unwrap()
    )
    .unwrap();
    writeln!(out, "{:?}", fixture.page_after(0).await.unwrap()).unwrap();
    inboxes_told(fixture, &mut out).await;
    hooks_told(fixture, &mut out).await;
    out
}

fn everything_current() -> PollRange {
    PollRange { after: seq(0), limit: 100, claimable_only: false, queues: QueueFilter::default(), scan_max: usize::MAX }
}

async fn inboxes_told(fixture: &Fixture, out: &mut String) {
    let store = &fixture.store;
    for name in ["alpha", "beta"] {
        let recipient = fixture.recipient(name);
        let view = store.view(&recipient).await.unwrap();
        let row = view.row.unwrap();
        let told = (row.head, row.next_due, row.presence, row.paused, &row.paused_queues, &row.policy, &row.active_session);
        writeln!(out, "{name} {told:?} {:?} {:?} {:?}", view.epoch, view.floor, view.log_head).unwrap();
        let items = store.items(&recipient, &ItemFilter::default(), part(None, 1000)).await.unwrap().items;
        let asked: Vec<_> = items.iter().map(|item| (item.facts.inbox_seq, item.facts.event_id)).collect();
        writeln!(out, "{:?}", store.envelopes(&fixture.tenant, &asked).await.unwrap()).unwrap();
        for mut item in items {
            std::sync::Arc::make_mut(&mut item.facts).recipient = inbox::RecipientNumber::new(0);
            writeln!(out, "{item:?}").unwrap();
        }
        let polled = store.poll(&recipient, &everything_current()).await.unwrap();
        let polled: Vec<EventId> = polled.items.iter().map(|item| item.facts.event_id).collect();
        let available: Vec<EventId> =
            fixture.available(name, QueueFilter::default(), 100).await.iter().map(|item| item.facts.event_id).collect();
        writeln!(out, "{polled:?} {available:?}").unwrap();
    }
    let session = AgentSessionId::parse("sess_1").unwrap();
    writeln!(out, "{:?}", store.session(&fixture.tenant, &session).await.unwrap()).unwrap();
    let (tenant, recipient) = (fixture.tenant.clone(), fixture.recipient("beta"));
    let kept = fixture.inbox(move |tx| {
        let (tenant, recipient) = (tenant.clone(), recipient.clone());
        Box::pin(async move {
            let row = tx.recipient(&recipient).await?.unwrap();
            let record = tx.claim_record(row.number, "claim").await?;
            let key = tx.lease_key(&tenant, &LeaseKey::new([6; 32])).await?;
            Ok(format!("{record:?} {:?}", key.as_bytes()))
        })
    });
    writeln!(out, "{}", kept.await.unwrap()).unwrap();
}

async fn hooks_told(fixture: &Fixture, out: &mut String) {
    let store = &fixture.store;
    for kind in [HookKind::Notify, HookKind::Callback] {
        for hook in store.hooks(&fixture.tenant, None, kind, None, 1000).await.unwrap() {
            writeln!(out, "{hook:?} {:?}", fixture.deliveries(hook.id, 100).await).unwrap();
            writeln!(out, "{:?} {:?}", HookStore::keys(&**store, hook.id).await.unwrap(), store.attempts(hook.id, 100).await.unwrap())
                .unwrap();
        }
    }
    let sealed: Vec<_> = store.sealed(None, 100).await.unwrap();
    writeln!(out, "{sealed:?} {:?}", store.server_keys().await.unwrap()).unwrap();
    let positions: Vec<_> = HookStore::tenants(&**store, &EVERY_GROUP, None, 100).await.unwrap();
    let positions: Vec<_> = positions.into_iter().map(|each| (each.tenant, each.position)).collect();
    writeln!(out, "{positions:?} {:?}", HookStore::totals(&**store).await.unwrap()).unwrap();
}
