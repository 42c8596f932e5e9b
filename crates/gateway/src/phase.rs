//! In which phase of its life the engine is; everything long-lived watches it.

use protocol::CloseCode;
use tokio::sync::watch;

/// A phase. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Everybody is served.
    Open,
    /// Connections leave one after another and new ones are turned away; polls and pages are served as ever.
    Dispersing,
    /// Nobody new is served; waiting polls answer what they have.
    Draining,
    /// Everybody is closed with this code.
    Closed(CloseCode),
}

impl Phase {
    /// Whether nobody new is served.
    pub(crate) const fn is_draining(self) -> bool {
        matches!(self, Self::Draining | Self::Closed(_))
    }
}

/// Follows the phase.
#[derive(Clone, Debug)]
pub(crate) struct PhaseWatch(watch::Receiver<Phase>);

impl PhaseWatch {
    pub(crate) const fn new(receiver: watch::Receiver<Phase>) -> Self {
        Self(receiver)
    }

    /// Waits until the engine drains or closes.
    pub(crate) async fn draining(&mut self) {
        if self.0.wait_for(|phase| phase.is_draining()).await.is_err() {
            // The engine is gone, and with it whoever could be served.
        }
    }

    /// Waits until the engine closes; answers the code.
    pub(crate) async fn closed(&mut self) -> CloseCode {
        let closed = self.0.wait_for(|phase| matches!(phase, Phase::Closed(_))).await;
        match closed.as_deref() {
            Ok(Phase::Closed(code)) => *code,
            _ => CloseCode::ShuttingDown,
        }
    }
}
