//! How a consumer's standing looks on the wire.

use agents::{ConsumerState, Holder};
use protocol::{ConsumerHolder, HolderKind, Open};

/// The answer of `getConsumerState` and `ackAgentEvents`.
pub(super) fn state(state: ConsumerState) -> protocol::ConsumerState {
    protocol::ConsumerState {
        consumer: state.consumer,
        acked_seq: state.acked,
        head_seq: state.head,
        lag: state.lag,
        in_flight: state.in_flight,
        holder: state.holder.map(holder),
    }
}

fn holder(holder: Holder) -> ConsumerHolder {
    let (kind, gateway_session_id) = match holder {
        Holder::Gateway(session) => (HolderKind::Gateway, Some(session)),
        Holder::Rest => (HolderKind::Rest, None),
    };
    ConsumerHolder { kind: Open::Known(kind), gateway_session_id, taken_at: None }
}
