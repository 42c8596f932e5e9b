//! How the server writes pages: from envelopes that were encoded when their events were accepted ([`domain::encode_body`]).

use domain::{Seq, SyncEpoch};

/// Appends an event page to `out`, from events that are encoded already (see [`domain::Event::write_envelope`]).
pub fn write_event_page(
    out: &mut Vec<u8>,
    events: impl IntoIterator<Item = impl AsRef<[u8]>>,
    next_cursor: Seq,
    head_seq: Seq,
    sync_epoch: SyncEpoch,
    unproven: bool,
) {
    out.extend_from_slice(br#"{"events":["#);
    for (index, event) in events.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(event.as_ref());
    }
    let tail = format!(r#"],"next_cursor":{next_cursor},"head_seq":{head_seq},"sync_epoch":"{sync_epoch}""#);
    out.extend_from_slice(tail.as_bytes());
    out.extend_from_slice(if unproven { br#","unproven":true}"# } else { b"}" });
}
