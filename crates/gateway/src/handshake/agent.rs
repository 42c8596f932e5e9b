//! Agents: a session holds a consumer, and the durable cursor decides where delivery begins (seed 004, design note 4).

use std::sync::Arc;

use agents::{ConsumerKey, SaveOutcome};
use authz::{Action, Caller, Target};
use bytes::Bytes;
use domain::SessionId;
use protocol::{CloseCode, Identify, Ready, ServerFrame};
use sync::Head;
use tokio::time::Instant;

use super::{Attached, Visitor, consumer_failure, denial, encode, refusal, resumed};
use crate::registry::Slot;
use crate::resync::consumer_resync;
use crate::runner::{Refused, Track};
use crate::session::{Link, Session};
use crate::takeover::Entrant;
use crate::{DeliveryWindow, Gateway};

/// A new session takes its consumer over. `cursor` and `sync_epoch` of the frame are ignored.
pub(super) async fn identify(
    gateway: &Gateway,
    visitor: Visitor,
    slot: Slot,
    identify: Identify,
) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    let key = ConsumerKey {
        tenant: visitor.caller.tenant.clone(),
        agent: visitor.caller.principal.clone(),
        name: identify.consumer.unwrap_or_default(),
    };
    let link = Arc::<Link>::default();
    let entrant = Entrant { id: SessionId::new(gateway.ids.uuid()), link: Arc::clone(&link) };
    let (taken, session) = gateway
        .take_for_session(&visitor.caller, &key, &entrant)
        .await
        .map_err(|error| consumer_failure(gateway, &visitor.caller, &error))?;
    let head = Head { seq: taken.head, floor: taken.floor, epoch: taken.epoch };
    let agents = &gateway.agents;
    let ready = Ready {
        consumer: Some(key.name),
        acked_seq: Some(taken.row.acked),
        max_inflight_events: Some(agents.max_inflight_events as u64),
        ack_timeout_ms: Some(u64::try_from(agents.ack_timeout.as_millis()).unwrap_or(u64::MAX)),
        ..visitor.ready(gateway, &session, &head)
    };
    let mut greeting = vec![encode(&ServerFrame::Ready(ready))];
    if identify.inbox_hints == Some(true) {
        match permit_hints(gateway, &visitor.caller).await {
            Ok(()) => session.want_hints(),
            Err(refused) => greeting.push(encode(&refused.frame())),
        }
    }
    Ok((begin(gateway, visitor, slot, session, link, &head), greeting))
}

/// A session goes on with a new connection, from what it holds in memory, once the store confirms that it still holds the consumer.
pub(super) async fn resume(
    gateway: &Gateway,
    visitor: Visitor,
    slot: Slot,
    session: &Arc<Session>,
) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    let Some(key) = session.key() else { return Err(CloseCode::UnknownSession) };
    let (authorizer, caller) = (&gateway.authorizer, &visitor.caller);
    authorizer
        .authorize(caller, Action::AgentEventsConsume, Target::Principal(&caller.principal))
        .await
        .map_err(|denied| denial(gateway, caller, denied))?;
    let link = Arc::<Link>::default();
    let _serialised = gateway.stripes.lock(key).await;
    match gateway.saver.save(session).await {
        Ok(SaveOutcome::Held(_)) => {}
        Ok(SaveOutcome::Replaced) => return Err(CloseCode::UnknownSession),
        Err(error) => return Err(consumer_failure(gateway, caller, &error)),
    }
    // After the save: what was acknowledged over REST meanwhile must not seem to lie above the head.
    let head = visitor.head().await?;
    let before = gateway.registry.reattach(session, &link, Instant::now()).map_err(refusal)?;
    if let Some(before) = before {
        // Agent connections have no device: for them a session resumed elsewhere is a consumer replaced (seed 004, design note 4).
        before.close(CloseCode::ConsumerReplaced);
    }
    let mut greeting = vec![encode(&resumed(head.seq, Some(session.position())))];
    if session.wants_hints()
        && let Err(refused) = permit_hints(gateway, caller).await
    {
        session.want_no_hints();
        greeting.push(encode(&refused.frame()));
    }
    Ok((begin(gateway, visitor, slot, Arc::clone(session), link, &head), greeting))
}

/// A fresh window after what the session has acknowledged. Nothing it dispatches carries the flag.
fn begin(gateway: &Gateway, visitor: Visitor, slot: Slot, session: Arc<Session>, link: Arc<Link>, head: &Head) -> Attached {
    let acked = session.position();
    let resync = consumer_resync(acked, head);
    let window = DeliveryWindow::new(acked, head.seq, gateway.window_limits());
    let hints = if session.wants_hints() { gateway.hints.listen(&visitor.caller) } else { None };
    Attached { hints, ..visitor.attach(session, link, slot, Track::Consumer(window), resync) }
}

/// Whether the agent may be told about its inbox. Without that the connection stands; it only hears no hints.
async fn permit_hints(gateway: &Gateway, caller: &Caller) -> Result<(), Refused> {
    let permitted = gateway.authorizer.authorize(caller, Action::StreamSubscribe, Target::Principal(&caller.principal)).await;
    permitted.map_err(|_| Refused::hints())
}
