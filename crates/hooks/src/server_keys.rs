//! The server's own signing keys, for receivers that trust a published key instead of sharing a secret. There is a present one and a next one,
//! which is published long before it signs; what has signed is published for as long as its signatures may still be on their way.

use std::time::Duration;

use async_trait::async_trait;
use domain::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};

use crate::hooks::Job;
use crate::sign::SigningKey;
use crate::{HookError, HookTx, Hooks, KeyId, PublishedKey, Sealed, SecretPlace, VaultError};

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

impl Hooks {
    /// The server's public signing keys: the present one, the next, and those that signed until lately. Makes them on the first call.
    ///
    /// # Errors
    /// [`HookError::Secrets`], the store's.
    pub async fn keys(&self) -> Result<Vec<PublishedKey>, HookError> {
        let keys = self.server_keys().await?;
        Ok(keys.into_iter().map(|key| PublishedKey { id: key.id, public: key.public, signs_from: key.signs_from }).collect())
    }

    /// Whether the master key opens what was sealed by others over the same store. Makes the server's keys on the first call.
    ///
    /// # Errors
    /// [`HookError::Secrets`] when it does not, the store's.
    pub async fn check_master_key(&self) -> Result<(), HookError> {
        self.server_signing_key(self.parts.clock.now()).await.map(drop)
    }

    /// The pair that signs now.
    pub(crate) async fn server_signing_key(&self, now: Timestamp) -> Result<SigningKey, HookError> {
        let keys = self.server_keys().await?;
        // The first key begins when it is made, which may be a moment after `now`.
        let key = keys.iter().rev().find(|key| key.signs_from <= now).or(keys.first()).ok_or(VaultError::UnknownKey)?;
        let pair = self.parts.vault.open(&place(key.id.as_str()), &key.pair)?;
        let pair = Ed25519KeyPair::from_pkcs8(&pair).map_err(|_| VaultError::Damaged)?;
        Ok(SigningKey::Ed25519(key.id.clone(), pair))
    }

    /// The keys, by when they begin to sign; made or moved on where it is time for that.
    async fn server_keys(&self) -> Result<Vec<ServerKey>, HookError> {
        let (settings, now) = (&self.parts.settings, self.parts.clock.now());
        let keys = self.parts.store.server_keys().await?;
        if is_in_order(&keys, now, settings.rotation_overlap) {
            return Ok(keys);
        }
        let fresh = [self.fresh_key()?, self.fresh_key()?];
        let (period, overlap) = (settings.server_key_period, settings.rotation_overlap);
        self.run("renew_server_keys", RenewJob { fresh, period, overlap }).await
    }

    /// A pair that begins to sign at the beginning of time.
    fn fresh_key(&self) -> Result<ServerKey, HookError> {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| VaultError::NoRandomness)?;
        let public = Ed25519KeyPair::from_pkcs8(pair.as_ref()).map_err(|_| VaultError::Damaged)?.public_key().as_ref().to_vec();
        let id = KeyId::of(self.parts.ids.uuid());
        let pair = self.parts.vault.seal(&place(id.as_str()), pair.as_ref())?;
        Ok(ServerKey { id, public, pair, signs_from: Timestamp::from_micros(0) })
    }
}

/// Where a pair belongs.
pub(crate) fn place(id: &str) -> SecretPlace<'_> {
    SecretPlace { tenant: "", table: "hook_server_keys", column: "pair", row: id }
}

/// A present key, a next one, and none whose time is over.
fn is_in_order(keys: &[ServerKey], now: Timestamp, overlap: Duration) -> bool {
    let next = keys.partition_point(|key| key.signs_from <= now);
    next > 0 && next < keys.len() && over(keys, now, overlap).is_none()
}

/// A key that was replaced longer ago than signatures are on their way.
fn over(keys: &[ServerKey], now: Timestamp, overlap: Duration) -> Option<&ServerKey> {
    let (first, second) = (keys.first()?, keys.get(1)?);
    (second.signs_from.plus(overlap) <= now).then_some(first)
}

struct RenewJob {
    fresh: [ServerKey; 2],
    period: Duration,
    overlap: Duration,
}

#[async_trait]
impl Job for RenewJob {
    type Answer = Vec<ServerKey>;

    async fn run(&self, tx: &mut dyn HookTx) -> Result<Vec<ServerKey>, HookError> {
        let now = tx.now();
        let mut keys = tx.server_keys().await?;
        let mut fresh = self.fresh.iter().cloned();
        while !is_in_order(&keys, now, self.overlap) {
            if let Some(old) = over(&keys, now, self.overlap) {
                tx.remove_server_key(&old.id).await?;
                keys.remove(0);
                continue;
            }
            let Some(mut key) = fresh.next() else { break };
            key.signs_from = keys.last().map_or(now, |last| last.signs_from.max(now).plus(self.period));
            // After a long silence the next key's time has passed too: then it signs, and the one after it is the next.
            tx.put_server_key(&key).await?;
            keys.push(key);
        }
        Ok(keys)
    }
}
