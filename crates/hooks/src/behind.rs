//! Hooks that are behind: more rings of them were outstanding than may be, and collapsed. Until they have caught up, their news is one ring, the
//! catch-up, whatever comes: what they cost does not grow with what is published.

use crate::{Delivery, HookError, HookTx, Reason};

/// How a hook stands to the news of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is rung for each.
    Abreast,
    /// It is rung once for all that has come.
    Behind,
}

/// What became of news that was folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// Rings that are new: one, or none.
    pub(crate) rings: u64,
    /// How the hook stands now.
    pub(crate) standing: Standing,
}

/// Has the catch-up of a hook tell of news too: the one that is outstanding, else a new one, which is not due before the hook's retry is. A hook that
/// had no backlog ring left has caught up: it is rung for each from the next news on.
///
/// `look` rings are looked at: what a hook that is behind can have, its catch-up and one for each queue.
pub(crate) async fn fold(tx: &mut dyn HookTx, news: &Delivery, look: usize) -> Result<Folded, HookError> {
    let outstanding = tx.deliveries(news.hook, look).await?;
    let standing = if outstanding.iter().any(is_backlog) { Standing::Behind } else { Standing::Abreast };
    if let Some(catch_up) = outstanding.iter().find(|ring| is_backlog(ring) && ring.queue.is_none()) {
        if catch_up.cause < news.cause {
            // Whoever is looking at it has not seen this news, and leaves it.
            tx.save_deliveries(&[Delivery { cause: news.cause, ..catch_up.clone() }]).await?;
        }
        return Ok(Folded { rings: 0, standing });
    }
    let retry_at = outstanding.iter().filter(|ring| ring.attempts > 0).map(|ring| ring.next_at).min();
    let next_at = news.next_at.max(retry_at.unwrap_or(news.next_at));
    Ok(Folded { rings: tx.add_deliveries(&[Delivery { next_at, ..news.clone() }]).await?, standing })
}

/// Puts rings for queues in the place of the catch-up that was told apart into them. A queue whose backlog ring is outstanding needs no other: a
/// hook has one turn at a time, so that it is sent after this. Whoever moved the catch-up's cause meanwhile has news that nobody looked at: it stays.
pub(crate) async fn tell_apart(
    tx: &mut dyn HookTx,
    catch_up: &Delivery,
    stored: Option<Delivery>,
    mut rings: Vec<Delivery>,
    look: usize,
) -> Result<(), HookError> {
    let Some(stored) = stored else { return Ok(()) };
    let outstanding = tx.deliveries(catch_up.hook, look).await?;
    rings.retain(|ring| !outstanding.iter().any(|other| is_backlog(other) && other.queue == ring.queue));
    tx.add_deliveries(&rings).await?;
    if stored.cause == catch_up.cause {
        tx.remove_deliveries(catch_up.hook, std::slice::from_ref(&catch_up.id)).await?;
    }
    Ok(())
}

fn is_backlog(ring: &Delivery) -> bool {
    ring.reason == Reason::Backlog
}
