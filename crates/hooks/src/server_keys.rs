//! The server's own signing keys, for receivers that trust a published key instead of sharing a secret.

use domain::Timestamp;

use crate::{KeyId, Sealed};

/// A row of `hook_server_keys`: an Ed25519 key pair of the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKey {
    /// Its name, as `keyid` carries it.
    pub id: KeyId,
    /// The public half: 32 bytes.
    pub public: Vec<u8>,
    /// The pair as PKCS#8, sealed.
    pub pair: Sealed,
    /// From when it signs, until the next one does. It is published before.
    pub signs_from: Timestamp,
}
