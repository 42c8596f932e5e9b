//! Comparing with the files under `tests/golden`: the wire format as it was agreed. A difference is a change of the protocol.
//!
//! `GOLDEN_WRITE=1` writes the files anew; the difference is then reviewed like code.

use std::path::Path;

use domain::{ActorKind, ConsumerName, EventId, GrantId, PrincipalId, Seq, SessionId, SyncEpoch, Timestamp, TokenId};

/// Compares `wire` with the file `name`, byte for byte.
pub(crate) fn check(name: &str, wire: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{wire}\n")).unwrap();
    }
    let agreed = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(agreed.trim_end_matches('\n'), wire, "{name}");
}

/// The golden text of `name`.
pub(crate) fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read_to_string(path).unwrap().trim_end_matches('\n').to_owned()
}

/// Writes `value`, compares it with the file, reads the file as `T` and writes that again: both directions of one format.
pub(crate) fn both_ways<T: serde::Serialize + serde::de::DeserializeOwned>(name: &str, value: &T) {
    let wire = serde_json::to_string(value).unwrap();
    check(name, &wire);
    let read: T = serde_json::from_str(&wire).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), wire, "{name}");
}

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).unwrap()
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn event_id() -> EventId {
    "0197f0ab-44f7-7f1a-b0ef-1f5d0f9a1c70".parse().unwrap()
}

pub(crate) fn session_id() -> SessionId {
    "0197f0ab-5a01-7c55-9d2e-6b0f4a7d2c11".parse().unwrap()
}

pub(crate) fn token_id() -> TokenId {
    "0197f0ab-6b12-7d66-8e3f-7c1f5b8e3d22".parse().unwrap()
}

pub(crate) fn grant_id() -> GrantId {
    "0197f0ab-7c23-7e77-9f40-8d2a6c9f4e33".parse().unwrap()
}

pub(crate) fn epoch() -> SyncEpoch {
    "6f1c1f0e-2a53-4a68-9a3e-5d8f0b7c9e10".parse().unwrap()
}

pub(crate) fn principal(name: &str) -> PrincipalId {
    PrincipalId::parse(name).unwrap()
}

pub(crate) fn consumer() -> ConsumerName {
    ConsumerName::default()
}

pub(crate) const AGENT: ActorKind = ActorKind::Agent;
