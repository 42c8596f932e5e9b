//! Lease tokens: derived, never stored, so that a replayed claim can be answered (inbox.md, "State machine").

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{EventId, PrincipalId};
use ring::digest::{SHA256, digest};
use ring::hmac;

/// How often an item has been claimed or taken away: every transition of a claimed item matches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// Wraps a number as stores keep it.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// SHA-256 of a lease token: what an item keeps of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseHash([u8; 32]);

impl LeaseHash {
    /// Wraps a digest as stores keep it.
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Of a token as a worker presents it, whatever its form: what was never issued matches nothing.
    pub fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Four bytes of it: uniform, and the same whenever the same claim is looked at.
    pub(crate) fn dice(&self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The secret of a lease. Shown only by [`LeaseToken::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseToken(String);

impl LeaseToken {
    /// The text that the worker is given.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What an item keeps of it.
    pub fn hash(&self) -> LeaseHash {
        LeaseHash::of(&self.0)
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(…)")
    }
}

/// The key of a tenant's lease tokens: 32 random bytes.
#[derive(Clone)]
pub struct LeaseKey {
    bytes: [u8; 32],
    key: hmac::Key,
}

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseKey(…)")
    }
}

impl LeaseKey {
    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { bytes, key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) }
    }

    /// Its bytes, for the store.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The token of a claim: `base64url(HMAC-SHA256(key, recipient ‖ event_id ‖ generation))`.
    pub fn token(&self, recipient: &PrincipalId, event: EventId, generation: Generation) -> LeaseToken {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(recipient.as_str().as_bytes());
        context.update(event.uuid().as_bytes());
        context.update(&generation.get().to_be_bytes());
        LeaseToken(URL_SAFE_NO_PAD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use domain::{EventId, PrincipalId};
    use uuid::Uuid;

    use super::{Generation, LeaseKey};

    #[test]
    fn a_token_is_the_same_again_and_another_for_every_claim() {
        let key = LeaseKey::new([7; 32]);
        let (alpha, beta) = (PrincipalId::parse("alpha").unwrap(), PrincipalId::parse("beta").unwrap());
        let (one, two) = (EventId::new(Uuid::from_u128(1)), EventId::new(Uuid::from_u128(2)));
        let token = key.token(&alpha, one, Generation::new(1));
        assert_eq!(token, key.token(&alpha, one, Generation::new(1)));
        assert_eq!(token.reveal().len(), 43);
        for other in [
            key.token(&beta, one, Generation::new(1)),
            key.token(&alpha, two, Generation::new(1)),
            key.token(&alpha, one, Generation::new(2)),
            LeaseKey::new([8; 32]).token(&alpha, one, Generation::new(1)),
        ] {
            assert_ne!(token, other);
            assert_ne!(token.hash(), other.hash());
        }
    }

    #[test]
    fn secrets_have_no_debug_form() {
        let key = LeaseKey::new([7; 32]);
        let token = key.token(&PrincipalId::parse("alpha").unwrap(), EventId::new(Uuid::from_u128(1)), Generation::new(1));
        assert_eq!(format!("{key:?} {token:?}"), "LeaseKey(…) LeaseToken(…)");
    }
}
