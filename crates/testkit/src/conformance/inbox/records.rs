//! Lease keys, records of claims, sessions, events of the inbox's own.

use authz::PrincipalKind;
use domain::{AgentSessionId, EventId, StoreError, TenantId, TokenId};
use inbox::{AgentSession, ClaimRecord, Generation, LeaseKey, RecipientNumber};

use super::{MINUTE, agent};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, Recorder, fresh, seq, tenant};

async fn lease_key(fixture: &Fixture, tenant: &TenantId, byte: u8) -> Result<[u8; 32], StoreError> {
    let tenant = tenant.clone();
    let key = fixture.inbox(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.lease_key(&tenant, &LeaseKey::new([byte; 32])).await })
    });
    key.await.map(|key| *key.as_bytes())
}

pub(crate) async fn the_first_lease_key_that_is_offered_stays_the_tenants(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_tenant("other").await;
    assert_eq!(lease_key(&fixture, &fixture.tenant, 1).await, Ok([1; 32]));
    assert_eq!(lease_key(&fixture, &fixture.tenant, 2).await, Ok([1; 32]));
    assert_eq!(lease_key(&fixture, &tenant("other"), 3).await, Ok([3; 32]));
    let fixture = fixture.reopen().await;
    assert_eq!(lease_key(&fixture, &fixture.tenant, 4).await, Ok([1; 32]));
    assert_eq!(lease_key(&fixture, &tenant("absent"), 5).await, Err(StoreError::TenantInactive));
}

async fn record(fixture: &Fixture, number: RecipientNumber, key: &'static str) -> Option<ClaimRecord> {
    fixture.inbox(move |tx| Box::pin(async move { tx.claim_record(number, key).await })).await.unwrap()
}

async fn put_record(fixture: &Fixture, number: RecipientNumber, key: &'static str, record: &ClaimRecord) {
    let record = record.clone();
    let put = fixture.inbox(move |tx| {
        let record = record.clone();
        Box::pin(async move { tx.put_claim_record(number, key, &record).await })
    });
    put.await.unwrap();
}

pub(crate) async fn a_record_of_claims_is_an_inboxs_own_is_replaced_and_goes_when_it_is_old(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["alpha", "beta"] {
        fixture.create_principal(name, PrincipalKind::Agent).await;
    }
    let (alpha, beta) = (fixture.opened("alpha").await.number, fixture.opened("beta").await.number);
    let claims = vec![(EventId::new(fresh()), Generation::new(3)), (EventId::new(fresh()), Generation::new(u64::MAX))];
    let first = ClaimRecord { request_hash: [1; 32], claims, created_at: fixture.now() };
    assert_eq!(record(&fixture, alpha, "k").await, None);
    put_record(&fixture, alpha, "k", &first).await;
    assert_eq!(record(&fixture, alpha, "k").await.as_ref(), Some(&first));
    assert_eq!((record(&fixture, beta, "k").await, record(&fixture, alpha, "l").await), (None, None));
    fixture.clock.advance(MINUTE);
    let second = ClaimRecord { request_hash: [2; 32], claims: Vec::new(), created_at: fixture.now() };
    put_record(&fixture, beta, "k", &first).await;
    put_record(&fixture, alpha, "k", &second).await;
    assert_eq!(record(&fixture, alpha, "k").await.as_ref(), Some(&second));
    while fixture.prune(fixture.now(), 1).await {}
    assert_eq!((record(&fixture, alpha, "k").await, record(&fixture, beta, "k").await), (Some(second), None));
}

fn session(fixture: &Fixture, id: &str, name: &str) -> AgentSession {
    AgentSession {
        id: AgentSessionId::parse(id).unwrap(),
        recipient: fixture.recipient(name),
        device: Some("laptop".to_owned()),
        transport: "sse".to_owned(),
        connected_at: fixture.now(),
        heartbeat_at: fixture.now(),
        last_seen: seq(7),
        token: TokenId::new(fresh()),
        is_active: true,
    }
}

async fn put_session(fixture: &Fixture, session: &AgentSession) -> Result<(), StoreError> {
    let session = session.clone();
    let put = fixture.inbox(move |tx| {
        let session = session.clone();
        Box::pin(async move { tx.put_session(&session).await })
    });
    put.await
}

async fn touch(fixture: &Fixture, id: &str, name: &str, last_seen: Option<u64>, is_active: bool) -> bool {
    let (id, recipient) = (AgentSessionId::parse(id).unwrap(), fixture.recipient(name));
    let touched = fixture.inbox(move |tx| {
        let (id, recipient) = (id.clone(), recipient.clone());
        Box::pin(async move { tx.touch_session(&recipient, &id, last_seen.map(seq), is_active).await })
    });
    touched.await.unwrap()
}

pub(crate) async fn a_session_is_its_inboxs_own_and_is_touched_and_replaced_by_it_alone(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["alpha", "beta"] {
        fixture.create_principal(name, PrincipalKind::Agent).await;
    }
    let first = session(&fixture, "sess_1", "alpha");
    put_session(&fixture, &first).await.unwrap();
    let stored = async |id: &str| fixture.store.session(&fixture.tenant, &AgentSessionId::parse(id).unwrap()).await.unwrap();
    assert_eq!(stored("sess_1").await.as_ref(), Some(&first));
    assert_eq!(stored("sess_2").await, None);
    assert!(matches!(put_session(&fixture, &session(&fixture, "sess_1", "beta")).await, Err(StoreError::Conflict(_))));
    assert!(matches!(put_session(&fixture, &session(&fixture, "sess_9", "nobody")).await, Err(StoreError::Conflict(_))));
    fixture.clock.advance(MINUTE);
    assert!(!touch(&fixture, "sess_1", "beta", None, false).await);
    assert!(!touch(&fixture, "sess_2", "alpha", None, false).await);
    assert!(touch(&fixture, "sess_1", "alpha", None, false).await);
    let touched = AgentSession { heartbeat_at: fixture.now(), is_active: false, ..first.clone() };
    assert_eq!(stored("sess_1").await, Some(touched.clone()));
    assert!(touch(&fixture, "sess_1", "alpha", Some(9), true).await);
    assert_eq!(stored("sess_1").await, Some(AgentSession { last_seen: seq(9), is_active: true, ..touched }));
    let again = AgentSession { device: None, transport: "poll".to_owned(), ..session(&fixture, "sess_1", "alpha") };
    put_session(&fixture, &again).await.unwrap();
    assert_eq!(stored("sess_1").await, Some(again));
}

pub(crate) async fn sessions_go_with_their_agent_and_when_nothing_was_heard_of_them(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    for name in ["alpha", "beta"] {
        fixture.create_principal(name, PrincipalKind::Agent).await;
    }
    for (id, name) in [("sess_1", "alpha"), ("sess_2", "beta"), ("sess_3", "beta")] {
        put_session(&fixture, &session(&fixture, id, name)).await.unwrap();
    }
    fixture.clock.advance(MINUTE);
    touch(&fixture, "sess_3", "beta", None, true).await;
    let tenant = fixture.tenant.clone();
    let deleted = fixture.admin(move |tx| {
        let tenant = tenant.clone();
        Box::pin(async move { tx.delete_principal(&tenant, &agent("alpha")).await })
    });
    assert_eq!(deleted.await, Ok(true));
    assert_eq!(fixture.count("agent_sessions").await, 2);
    while fixture.prune(fixture.now(), 1).await {}
    assert_eq!(fixture.count("agent_sessions").await, 1);
    assert!(touch(&fixture, "sess_3", "beta", None, true).await);
}

pub(crate) async fn events_of_the_inbox_are_appended_with_the_change_that_they_tell_of(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let recorder = Recorder::listen(&fixture);
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    let (tenant, events) = (fixture.tenant.clone(), [fixture.event("a"), fixture.event("b")]);
    let mut item = fixture.find("alpha", &[id]).await.remove(0).unwrap();
    let recipient = fixture.recipient("alpha");
    let appended = fixture.inbox(move |tx| {
        let (tenant, events, recipient) = (tenant.clone(), events.clone(), recipient.clone());
        let now = tx.now();
        item.claim_key = now;
        let mut item = item.clone();
        Box::pin(async move {
            let mut row = tx.recipient(&recipient).await?.unwrap();
            let seqs = tx.append_inbox(&tenant, &events).await?;
            item.ring_seq = seqs[1];
            row.head = seqs[1];
            tx.put(&[item]).await?;
            tx.save_recipient(&row).await?;
            Ok(seqs)
        })
    });
    assert_eq!(appended.await, Ok(vec![seq(2), seq(3)]));
    assert_eq!(recorder.seqs("acme"), [1, 2, 3]);
    let page = fixture.store.poll(&fixture.recipient("alpha"), &super::list::range(1, 9)).await.unwrap();
    assert_eq!((page.items[0].ring_seq, page.view.head(), page.oldest), (seq(3), seq(3), Some(seq(3))));
    let (absent, event) = (crate::conformance::support::tenant("absent"), fixture.event("x"));
    let refused = fixture.inbox(move |tx| {
        let (absent, event) = (absent.clone(), event.clone());
        Box::pin(async move { tx.append_inbox(&absent, &[event]).await })
    });
    assert_eq!(refused.await, Err(StoreError::TenantInactive));
}
