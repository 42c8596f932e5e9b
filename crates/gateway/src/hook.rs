//! The outgoing port that every delivery to a consumer passes (seed 004, design note 7).

use domain::{BoxFuture, Event, PrincipalId, StoreError};

/// What a hook decides about one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Deliver it.
    Deliver,
    /// Do not deliver it; it counts as checked.
    Withhold,
}

/// A hook's answer: at once, or after work that must wait for something.
pub enum Preparation {
    /// Decided without waiting; what a hook answers for events that do not concern it.
    Ready(Verdict),
    /// To be awaited before this event and those after it are delivered. An error is tried again like a failed read.
    Later(BoxFuture<'static, Result<Verdict, StoreError>>),
}

impl std::fmt::Debug for Preparation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(verdict) => f.debug_tuple("Ready").field(verdict).finish(),
            Self::Later(_) => f.write_str("Later(…)"),
        }
    }
}

/// Called for every dispatch to a consumer, on both transports, redeliveries included.
pub trait DeliveryHook: Send + Sync {
    /// Prepares the delivery of `event` to `agent`.
    fn prepare(&self, agent: &PrincipalId, event: &Event) -> Preparation;
}

/// The first binding: passes every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassDelivery;

impl DeliveryHook for PassDelivery {
    fn prepare(&self, _agent: &PrincipalId, _event: &Event) -> Preparation {
        Preparation::Ready(Verdict::Deliver)
    }
}
