//! Texts are kept to the letter, whatever their characters.

use authz::{AuditDecision, AuditEntry, AuditFilter, IdempotentAnswer, Keyset, Principal, PrincipalKind};
use bytes::Bytes;
use domain::{AgentSessionId, Publication, StoreError, TokenId};
use inbox::{AckResult, AgentSession, Report, Rules};
use intake::Schedule;

use super::inbox::{MINUTE, agent};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, principal, seq};

/// Everything that a quoting, a pattern, an array or a copy format could trip over.
const ODD: &str = "'\"\\{}%_$1,;\n\t\r--/*\u{1}\u{7f}\u{a0}\u{e9}e\u{301}\u{1F980}\u{ffff}\u{10ffff} NULL null";

pub(crate) async fn odd_texts_of_identities_come_back_as_they_were(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let sam = Principal { display_name: Some(ODD.to_owned()), ..principal("sam", PrincipalKind::Person, fixture.now()) };
    let entry = AuditEntry {
        id: 0,
        at: fixture.now(),
        actor: Some(agent("sam")),
        action: ODD.to_owned(),
        target: ODD.to_owned(),
        decision: AuditDecision::Allow,
        count: 1,
        before: Some(String::new()),
        after: Some(ODD.to_owned()),
    };
    let answer = IdempotentAnswer { request_hash: [255; 32], status: 201, body: ODD.to_owned() };
    let (tenant, now, made, noted, stored) = (fixture.tenant.clone(), fixture.now(), sam.clone(), entry.clone(), answer.clone());
    let written: Result<(), StoreError> = fixture
        .admin(move |tx| {
            let (tenant, made, noted, stored) = (tenant.clone(), made.clone(), noted.clone(), stored.clone());
            Box::pin(async move {
                tx.create_principal(&tenant, &made).await?;
                tx.audit(&tenant, &noted).await?;
                tx.store_answer(&tenant, &made.id, ODD, &stored, now, now).await
            })
        })
        .await;
    assert_eq!(written, Ok(()));
    let denied = AuditEntry { decision: AuditDecision::Deny, before: None, after: None, ..entry.clone() };
    fixture.store.record_denials(&[(fixture.tenant.clone(), denied.clone()), (fixture.tenant.clone(), denied)]).await.unwrap();
    assert_eq!(fixture.store.principal(&fixture.tenant, &sam.id).await, Ok(Some(sam.clone())));
    assert_eq!(fixture.store.idempotent_answer(&fixture.tenant, &sam.id, ODD, now).await, Ok(Some(answer)));
    let filter = AuditFilter { action: Some(ODD.to_owned()), ..AuditFilter::default() };
    let lines = fixture.store.audit(&fixture.tenant, &filter, &Keyset { after: None, limit: 9 }).await.unwrap();
    assert_eq!(lines.iter().map(|line| (line.target.as_str(), line.count)).collect::<Vec<_>>(), [(ODD, 2), (ODD, 1)]);
    assert_eq!((lines[1].before.as_deref(), lines[1].after.as_deref()), (Some(""), Some(ODD)));
}

pub(crate) async fn odd_texts_of_events_and_items_come_back_as_they_were(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("alpha", PrincipalKind::Agent).await;
    let mut work = fixture.work(&["alpha"]);
    (work.summary, work.kind, work.source) = (ODD.to_owned(), Some(ODD.to_owned()), Some(String::new()));
    let job = Publication { body: Bytes::from(ODD), ..fixture.job_of(work) };
    let (id, position) = fixture.publish(job.clone()).await;
    assert_eq!(fixture.page_after(0).await.unwrap().events[0].body, job.body);
    assert_eq!(fixture.store.envelopes(&fixture.tenant, &[(position, id)]).await, Ok(vec![Some(job.body.clone())]));
    let mut item = fixture.claim("alpha", id, MINUTE).await;
    assert_eq!((item.facts.summary.as_str(), item.facts.kind.as_deref(), item.facts.source.as_deref()), (ODD, Some(ODD), Some("")));
    let report = Report { summary: Some(ODD.to_owned()), result: Some("{\"a\":\"\\u0001\"}".to_owned()) };
    item.acknowledge(fixture.now(), AckResult::Completed, report, &Rules::default()).unwrap();
    fixture.put(vec![item.clone()]).await.unwrap();
    assert_eq!(fixture.item("alpha", id).await, Some(item));

    let session = AgentSession {
        id: AgentSessionId::parse("sess_1").unwrap(),
        recipient: fixture.recipient("alpha"),
        device: Some(ODD.to_owned()),
        transport: "sse".to_owned(),
        connected_at: fixture.now(),
        heartbeat_at: fixture.now(),
        last_seen: seq(0),
        token: TokenId::new(fresh()),
        is_active: true,
    };
    let opened = session.clone();
    let put = fixture.inbox(move |tx| {
        let opened = opened.clone();
        Box::pin(async move { tx.put_session(&opened).await })
    });
    put.await.unwrap();
    assert_eq!(fixture.store.session(&fixture.tenant, &session.id).await, Ok(Some(session)));
}

pub(crate) async fn odd_texts_of_what_waits_come_back_as_they_were(harness: &dyn Harness) {
    let fixture = Fixture::new(harness).await;
    let mut work = fixture.work(&["alpha"]);
    (work.summary, work.kind, work.source) = (ODD.to_owned(), Some(String::new()), Some(ODD.to_owned()));
    let publication = Publication { body: Bytes::from(ODD), ..fixture.job_of(work.clone()) };
    let (tenant, id, body) = (fixture.tenant.clone(), publication.id, publication.body.clone());
    let schedule = Schedule { publication, publisher: agent("sam"), available_at: fixture.now() };
    let failed = fixture.publish_tx(move |tx| {
        let (tenant, schedule) = (tenant.clone(), schedule.clone());
        Box::pin(async move {
            tx.schedule(&tenant, &schedule).await?;
            tx.fail(&tenant, id, ODD).await
        })
    });
    assert_eq!(failed.await, Ok(true));
    let stored = fixture.store.scheduled_event(&fixture.tenant, id).await.unwrap().unwrap();
    assert_eq!((stored.failure.as_deref(), stored.schedule.publication.body), (Some(ODD), body));
    assert_eq!(stored.schedule.publication.work.as_deref(), Some(&work));
}
