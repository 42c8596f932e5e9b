//! Refused requests on their way into the audit log: counted per actor, action and minute, so that a flood of them costs a few rows.

use std::collections::HashMap;
use std::sync::Mutex;

use domain::{PrincipalId, TenantId, Timestamp};

use crate::cache::lock;
use crate::{Action, AuditDecision, AuditEntry, Target};

const MINUTE_MICROS: i64 = 60_000_000;
/// Targets of one actor and action that a minute tells apart; further ones are counted together.
const TARGETS_APART: usize = 16;
/// The target under which further ones are counted.
const OTHER_TARGETS: &str = "(others)";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    /// Absent when too many actors were refused at once.
    actor: Option<PrincipalId>,
    action: Action,
    minute: i64,
}

/// Counts per target that are not written yet. Targets stay with count 0 until their minute is over, so that the bound on them holds.
type Counts = Vec<(String, u64)>;

/// Denials that wait to be written. Bounded; counts are never lost, only merged.
#[derive(Debug)]
pub(crate) struct Denials {
    max: usize,
    waiting: Mutex<HashMap<Key, Counts>>,
}

impl Denials {
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), waiting: Mutex::default() }
    }

    /// Counts one denial; `false` when its actor could not be told apart any more.
    pub(crate) fn note(&self, tenant: &TenantId, actor: &PrincipalId, action: Action, target: Target<'_>, now: Timestamp) -> bool {
        let minute = now.as_micros().div_euclid(MINUTE_MICROS);
        let mut key = Key { tenant: tenant.clone(), actor: Some(actor.clone()), action, minute };
        let mut waiting = lock(&self.waiting);
        let apart = waiting.len() < self.max || waiting.contains_key(&key);
        if apart {
            add(waiting.entry(key).or_default(), target.to_string(), 1);
        } else {
            key.actor = None;
            add(waiting.entry(key).or_default(), OTHER_TARGETS.to_owned(), 1);
        }
        apart
    }

    /// Takes what is to be written, and forgets minutes that are over.
    pub(crate) fn take(&self, now: Timestamp) -> Vec<(TenantId, AuditEntry)> {
        let minute = now.as_micros().div_euclid(MINUTE_MICROS);
        let mut waiting = lock(&self.waiting);
        let mut entries = Vec::new();
        for (key, counts) in waiting.iter_mut() {
            for (target, count) in counts.iter_mut().filter(|(_, count)| *count > 0) {
                entries.push((key.tenant.clone(), entry(key, target.clone(), std::mem::take(count))));
            }
        }
        waiting.retain(|key, _| key.minute >= minute);
        entries
    }

    /// Puts back what could not be written.
    pub(crate) fn restore(&self, entries: Vec<(TenantId, AuditEntry)>) {
        let mut waiting = lock(&self.waiting);
        for (tenant, entry) in entries {
            let Some(action) = Action::ALL.into_iter().find(|action| action.name() == entry.action) else { continue };
            let key = Key { tenant, actor: entry.actor, action, minute: entry.at.as_micros().div_euclid(MINUTE_MICROS) };
            add(waiting.entry(key).or_default(), entry.target, entry.count);
        }
    }
}

fn add(counts: &mut Counts, target: String, more: u64) {
    if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == target) {
        *count += more;
    } else if counts.len() < TARGETS_APART || target == OTHER_TARGETS {
        counts.push((target, more));
    } else {
        add(counts, OTHER_TARGETS.to_owned(), more);
    }
}

fn entry(key: &Key, target: String, count: u64) -> AuditEntry {
    AuditEntry {
        id: 0,
        at: Timestamp::from_micros(key.minute * MINUTE_MICROS),
        actor: key.actor.clone(),
        action: key.action.name().to_owned(),
        target,
        decision: AuditDecision::Deny,
        count,
        before: None,
        after: None,
    }
}

#[cfg(test)]
mod tests {
    use domain::{PrincipalId, TenantId, Timestamp};

    use super::{Denials, OTHER_TARGETS, TARGETS_APART};
    use crate::{Action, Target};

    fn tenant() -> TenantId {
        TenantId::parse("default").unwrap()
    }

    fn principal(name: &str) -> PrincipalId {
        PrincipalId::parse(name).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn denials_are_counted_per_actor_action_and_minute() {
        let denials = Denials::new(100);
        let (ann, bob) = (principal("ann"), principal("bob"));
        for second in 0..90 {
            denials.note(&tenant(), &ann, Action::EventsPublish, Target::Tenant, at(second));
        }
        denials.note(&tenant(), &bob, Action::EventsPublish, Target::Tenant, at(0));
        denials.note(&tenant(), &ann, Action::EventsRead, Target::Tenant, at(0));
        let mut rows: Vec<_> = denials.take(at(90)).into_iter().map(|(_, row)| (row.actor, row.action, row.at, row.count)).collect();
        rows.sort();
        let publish = || "events.publish".to_owned();
        let expected = [
            (Some(ann.clone()), publish(), at(0), 60),
            (Some(ann.clone()), publish(), at(60), 30),
            (Some(ann), "events.read".to_owned(), at(0), 1),
            (Some(bob), publish(), at(0), 1),
        ];
        assert_eq!(rows, expected);
        assert!(denials.take(at(91)).is_empty());
    }

    #[test]
    fn a_flood_over_many_targets_or_actors_is_bounded_and_its_count_kept() {
        let denials = Denials::new(10);
        for number in 0..1_000 {
            let actor = principal(&format!("p{}", number % 50));
            let target = principal(&format!("t{number}"));
            denials.note(&tenant(), &actor, Action::PrincipalsRead, Target::Principal(&target), at(0));
        }
        let rows = denials.take(at(0));
        assert!(rows.len() <= 11 * (TARGETS_APART + 1), "{}", rows.len());
        assert_eq!(rows.iter().map(|(_, row)| row.count).sum::<u64>(), 1_000);
        assert!(rows.iter().any(|(_, row)| row.actor.is_none() && row.target == OTHER_TARGETS));
    }

    #[test]
    fn what_could_not_be_written_comes_again_with_its_count() {
        let denials = Denials::new(10);
        denials.note(&tenant(), &principal("ann"), Action::AuditRead, Target::Tenant, at(0));
        let taken = denials.take(at(0));
        denials.restore(taken.clone());
        denials.note(&tenant(), &principal("ann"), Action::AuditRead, Target::Tenant, at(1));
        let again = denials.take(at(200));
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].1.count, 2);
        assert_eq!(again[0].1.target, taken[0].1.target);
    }
}
