//! Hooks that are behind: more rings of them were outstanding than may be, and collapsed. Until they have caught up, their news is one ring, the
//! catch-up, whatever comes: what they cost does not grow with what is published.

use std::time::Duration;

use crate::{Delivery, HookError, HookTx, Reason, Settings};

/// How long a catch-up waits for room.
const CROWDED: Duration = Duration::from_secs(1);

/// Into how many queues a catch-up is told apart, and how many rings a hook that is behind may have beside it.
pub(crate) fn most_queues(settings: &Settings) -> usize {
    settings.outstanding_max.max(settings.max_queues)
}

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

/// Puts rings for queues in the place of the catch-up that was told apart into them.
///
/// A queue whose backlog ring has not been sent yet needs no other: a hook has one turn at a time, so that it is sent after this. One whose ring is
/// being repeated may see it given up: the catch-up waits for that, and so it does when there is no room for more than `most` rings. Whoever moved
/// its cause meanwhile has news that nobody looked at: it stays for those too.
pub(crate) async fn tell_apart(
    tx: &mut dyn HookTx,
    catch_up: &Delivery,
    stored: Option<Delivery>,
    mut rings: Vec<Delivery>,
    most: usize,
) -> Result<(), HookError> {
    let Some(stored) = stored else { return Ok(()) };
    let outstanding = tx.deliveries(catch_up.hook, most.saturating_add(1)).await?;
    let of_queue = |ring: &Delivery| outstanding.iter().find(|other| is_backlog(other) && other.queue == ring.queue);
    let repeated_at = rings.iter().filter_map(of_queue).filter(|other| other.attempts > 0).map(|other| other.next_at).min();
    rings.retain(|ring| of_queue(ring).is_none());
    let room = most.saturating_sub(outstanding.len());
    let crowded_at = (rings.len() > room).then(|| tx.now().plus(CROWDED));
    rings.truncate(room);
    tx.add_deliveries(&rings).await?;
    match [repeated_at, crowded_at].into_iter().flatten().min() {
        Some(next_at) => tx.save_deliveries(&[Delivery { next_at, ..stored }]).await?,
        None if stored.cause == catch_up.cause => tx.remove_deliveries(catch_up.hook, std::slice::from_ref(&catch_up.id)).await?,
        None => {}
    }
    Ok(())
}

fn is_backlog(ring: &Delivery) -> bool {
    ring.reason == Reason::Backlog
}
