//! What an attempt makes of its ring and of its hook's health. Pure.

use std::time::Duration;

use domain::Timestamp;

use crate::retry::{Verdict, pause};
use crate::{AttemptRecord, Delivery, DisabledCause, Hook, HookState, Reason, Settings};

/// What becomes of a ring after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The receiver has it.
    Delivered,
    /// It is tried again then.
    Again(Timestamp),
    /// It is given up.
    Exhausted,
    /// It is given up, and the hook is not rung any more: told exactly once.
    Disabled(DisabledCause),
}

/// Notes an attempt in the hook's health and in its ring, and says what follows.
pub(crate) fn settle(
    hook: &mut Hook,
    delivery: &mut Delivery,
    attempt: &AttemptRecord,
    retry_after: Option<Duration>,
    now: Timestamp,
    settings: &Settings,
) -> Settled {
    hook.health.last_status = attempt.status;
    hook.health.last_attempt_at = hook.health.last_attempt_at.max(Some(attempt.at));
    delivery.attempts = delivery.attempts.max(attempt.attempt);
    match attempt.class.verdict() {
        Verdict::Delivered => {
            hook.health.exhausted_in_row = 0;
            Settled::Delivered
        }
        Verdict::Retry if delivery.attempts < settings.attempts => {
            delivery.next_at = now.plus(pause(settings, &delivery.id, delivery.attempts, retry_after));
            Settled::Again(delivery.next_at)
        }
        verdict => give_up(hook, delivery, verdict, settings),
    }
}

fn give_up(hook: &mut Hook, delivery: &Delivery, verdict: Verdict, settings: &Settings) -> Settled {
    // A challenge that is not answered proves nothing about a receiver that was never rung; one that is disabled already is told no more.
    if delivery.reason == Reason::Challenge || hook.state != HookState::Active {
        return Settled::Exhausted;
    }
    hook.health.exhausted_in_row = hook.health.exhausted_in_row.saturating_add(1);
    let cause = match verdict {
        Verdict::Gone => DisabledCause::Gone,
        _ if hook.health.exhausted_in_row >= settings.disable_after.max(1) => DisabledCause::Exhausted,
        _ => return Settled::Exhausted,
    };
    hook.state = HookState::Disabled(cause);
    Settled::Disabled(cause)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{PrincipalId, Seq, TenantId, Timestamp};
    use uuid::Uuid;

    use super::{Settled, settle};
    use crate::{
        AttemptClass, AttemptRecord, Delivery, DisabledCause, Health, Hook, HookId, HookKind, HookState, HookUrl, Profile, Reason,
        Settings, WebhookId,
    };

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn hook() -> Hook {
        Hook {
            id: HookId::new(Uuid::from_u128(1)),
            tenant: TenantId::parse("acme").unwrap(),
            agent: PrincipalId::parse("alpha").unwrap(),
            kind: HookKind::Notify,
            profile: Profile::StandardWebhooks,
            url: HookUrl::parse("https://example.com/x").unwrap(),
            queues: Vec::new(),
            ignore_presence: false,
            max_rate_per_minute: None,
            state: HookState::Active,
            challenge: None,
            health: Health::default(),
            since: Seq::ZERO,
            created_at: NOW,
        }
    }

    fn ring(reason: Reason, number: u64) -> Delivery {
        let hook = hook();
        let cause = Seq::new(number).unwrap();
        Delivery {
            tenant: hook.tenant,
            hook: hook.id,
            id: WebhookId::of_signal(hook.id, cause, NOW),
            reason,
            cause,
            event: None,
            queue: None,
            attempts: 0,
            next_at: NOW,
            created_at: NOW,
        }
    }

    fn attempt(delivery: &Delivery, class: AttemptClass) -> AttemptRecord {
        let attempt = delivery.attempts + 1;
        AttemptRecord {
            id: delivery.id.clone(),
            reason: delivery.reason,
            event: None,
            attempt,
            at: NOW,
            latency: Duration::from_millis(3),
            status: None,
            class,
        }
    }

    fn step(hook: &mut Hook, delivery: &mut Delivery, class: AttemptClass) -> Settled {
        let attempt = attempt(delivery, class);
        settle(hook, delivery, &attempt, None, NOW, &Settings::default())
    }

    #[test]
    fn a_ring_has_three_attempts() {
        let (mut hook, mut ring) = (hook(), ring(Reason::Created, 1));
        assert!(matches!(step(&mut hook, &mut ring, AttemptClass::Timeout), Settled::Again(at) if at > NOW));
        assert!(
            matches!(step(&mut hook, &mut ring, AttemptClass::ServerError), Settled::Again(at) if at.since(NOW) >= Duration::from_secs(4))
        );
        assert_eq!(hook.health.exhausted_in_row, 0);
        assert_eq!(step(&mut hook, &mut ring, AttemptClass::Dns), Settled::Exhausted);
        assert_eq!(hook.health.exhausted_in_row, 1);
    }

    #[test]
    fn final_answers_are_exhausted_at_once() {
        for class in [AttemptClass::Redirect, AttemptClass::ClientError, AttemptClass::Refused] {
            let (mut hook, mut ring) = (hook(), ring(Reason::Created, 1));
            assert_eq!(step(&mut hook, &mut ring, class), Settled::Exhausted);
            assert_eq!(hook.health.exhausted_in_row, 1);
        }
    }

    #[test]
    fn ten_exhausted_in_a_row_disable_exactly_once() {
        let mut hook = hook();
        let settled: Vec<Settled> =
            (1..=12).map(|number| step(&mut hook, &mut ring(Reason::Created, number), AttemptClass::ClientError)).collect();
        let disabled = Settled::Disabled(DisabledCause::Exhausted);
        assert_eq!(settled.iter().position(|settled| *settled == disabled), Some(9));
        assert_eq!(settled.iter().filter(|settled| **settled == disabled).count(), 1);
        assert_eq!(hook.state, HookState::Disabled(DisabledCause::Exhausted));
    }

    #[test]
    fn one_success_clears_the_count() {
        let mut hook = hook();
        for number in 1..=9 {
            step(&mut hook, &mut ring(Reason::Created, number), AttemptClass::ClientError);
        }
        assert_eq!(step(&mut hook, &mut ring(Reason::Created, 10), AttemptClass::Delivered), Settled::Delivered);
        assert_eq!(step(&mut hook, &mut ring(Reason::Created, 11), AttemptClass::ClientError), Settled::Exhausted);
        assert_eq!((hook.health.exhausted_in_row, hook.state), (1, HookState::Active));
    }

    #[test]
    fn gone_disables_at_once() {
        let mut hook = hook();
        assert_eq!(step(&mut hook, &mut ring(Reason::Created, 1), AttemptClass::Gone), Settled::Disabled(DisabledCause::Gone));
        assert_eq!(step(&mut hook, &mut ring(Reason::Created, 2), AttemptClass::Gone), Settled::Exhausted, "told once");
    }

    #[test]
    fn what_ends_after_the_hook_was_disabled_does_not_change_why() {
        let mut hook = hook();
        hook.state = HookState::Disabled(DisabledCause::Asked);
        assert_eq!(step(&mut hook, &mut ring(Reason::Created, 1), AttemptClass::Gone), Settled::Exhausted);
        assert_eq!(hook.state, HookState::Disabled(DisabledCause::Asked));
    }

    #[test]
    fn an_unanswered_challenge_counts_for_nothing() {
        let mut hook = hook();
        hook.state = HookState::PendingVerification;
        for number in 1..=20 {
            step(&mut hook, &mut ring(Reason::Challenge, number), AttemptClass::Gone);
        }
        assert_eq!((hook.state, hook.health.exhausted_in_row), (HookState::PendingVerification, 0));
    }
}
