//! People and apps: they hold their cursor themselves and bring it along.

use std::sync::Arc;

use authz::{Action, Target};
use bytes::Bytes;
use domain::{Seq, SessionId, SyncEpoch};
use protocol::{CloseCode, Identify, Resume, ServerFrame};
use sync::Head;
use tokio::time::Instant;

use super::{Attached, Visitor, denial, encode, refusal, resumed};
use crate::Gateway;
use crate::progress::Progress;
use crate::registry::Slot;
use crate::resync::{Resync, client_resync};
use crate::runner::Track;
use crate::session::{Link, Session};

/// A new session. `consumer` of the frame is accepted and ignored.
pub(super) async fn identify(
    gateway: &Gateway,
    visitor: Visitor,
    slot: Slot,
    identify: &Identify,
) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    let head = permit(gateway, &visitor).await?;
    let (track, resync) = start(gateway, identify.cursor, identify.sync_epoch, &head);
    let link = Arc::<Link>::default();
    let id = SessionId::new(gateway.ids.uuid());
    let session = Session::new(id, visitor.owner.clone(), None, head.epoch, track.read());
    gateway.registry.enter(&session, &link);
    let greeting = vec![encode(&ServerFrame::Ready(visitor.ready(gateway, &session, &head)))];
    Ok((visitor.attach(session, link, slot, track, resync), greeting))
}

/// A session goes on with a new connection, from the cursor of the frame, or from what was last sent.
pub(super) async fn resume(
    gateway: &Gateway,
    visitor: Visitor,
    slot: Slot,
    session: &Arc<Session>,
    resume: &Resume,
) -> Result<(Attached, Vec<Bytes>), CloseCode> {
    let head = permit(gateway, &visitor).await?;
    let link = Arc::<Link>::default();
    let before = gateway.registry.reattach(session, &link, Instant::now()).map_err(refusal)?;
    if let Some(before) = before {
        before.close(CloseCode::SessionReplaced);
    }
    let cursor = resume.cursor.unwrap_or_else(|| session.position());
    let (track, resync) = start(gateway, Some(cursor), Some(session.epoch()), &head);
    let greeting = vec![encode(&resumed(head.seq, None))];
    Ok((visitor.attach(Arc::clone(session), link, slot, track, resync), greeting))
}

async fn permit(gateway: &Gateway, visitor: &Visitor) -> Result<Head, CloseCode> {
    let caller = &visitor.caller;
    let permitted = gateway.authorizer.authorize(caller, Action::EventsRead, Target::Tenant).await;
    permitted.map_err(|denied| denial(gateway, caller, denied))?;
    visitor.head().await
}

/// Where reading begins: after the cursor when it can be served, else live at the head.
fn start(gateway: &Gateway, cursor: Option<Seq>, epoch: Option<SyncEpoch>, head: &Head) -> (Track, Option<Resync>) {
    let (cursor, every) = (cursor.unwrap_or(head.seq), gateway.settings.cursor_advance_every);
    let resync = client_resync(cursor, epoch, head, Some(gateway.settings.max_catchup_events));
    let progress = if resync.is_some() { Progress::live(head.seq, every) } else { Progress::catching_up(cursor, head.seq, every) };
    (Track::Client(progress), resync)
}
