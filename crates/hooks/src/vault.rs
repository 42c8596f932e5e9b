//! Secrets at rest: each is sealed with a data key of its own (AES-256-GCM), and that is wrapped by the master key. Changing the master key
//! wraps the data keys anew and touches no secret.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;
use zeroize::Zeroizing;

/// A sealed secret, as stores keep it: version, name of the master key, wrapped data key, sealed secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// What a store kept.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What a store keeps.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// Where a sealed secret belongs. It cannot be opened in any other place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace<'a> {
    /// The tenant; empty for what belongs to the instance.
    pub tenant: &'a str,
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The row's key.
    pub row: &'a str,
}

impl SecretPlace<'_> {
    /// Unambiguous: each part behind its length.
    fn authenticated(&self, purpose: &str) -> Vec<u8> {
        let parts = [purpose, self.tenant, self.table, self.column, self.row];
        let part = |part: &str| [&(part.len() as u64).to_be_bytes()[..], part.as_bytes()].concat();
        parts.into_iter().flat_map(part).collect()
    }
}

/// Why a secret cannot be sealed or opened.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum VaultError {
    /// The server was given no master key (`503 secrets_unavailable`).
    #[error("the server has no master key")]
    NoKey,
    /// The master key that it was sealed with is not among those that the server has.
    #[error("sealed with a master key that the server does not have")]
    UnknownKey,
    /// It was changed, or belongs elsewhere.
    #[error("the sealed secret does not belong here, or was changed")]
    Damaged,
    /// The system's random source failed.
    #[error("no randomness")]
    NoRandomness,
}

/// Seals and opens secrets.
pub trait Vault: Send + Sync {
    /// Seals a secret for its place.
    ///
    /// # Errors
    /// [`VaultError::NoKey`], [`VaultError::NoRandomness`].
    fn seal(&self, place: &SecretPlace<'_>, secret: &[u8]) -> Result<Sealed, VaultError>;
    /// Opens what was sealed for this place, also with a previous master key.
    ///
    /// # Errors
    /// [`VaultError`].
    fn open(&self, place: &SecretPlace<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, VaultError>;
    /// The same secret under the present master key; `None` when it is already.
    ///
    /// # Errors
    /// [`VaultError`].
    fn rewrap(&self, place: &SecretPlace<'_>, sealed: &Sealed) -> Result<Option<Sealed>, VaultError>;
}

/// Not 32 bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a master key has 32 bytes")]
pub struct InvalidMasterKey;

const KEY: usize = 32;
const TAG: usize = 16;
const VERSION: u8 = 1;
const NAME: usize = 8;
const WRAPPED: usize = NONCE_LEN + KEY + TAG;

/// A key that wraps data keys: 32 random bytes from outside the store.
#[derive(Clone)]
pub struct MasterKey {
    bytes: Zeroizing<[u8; KEY]>,
    name: [u8; NAME],
}

impl MasterKey {
    /// The key of these bytes.
    ///
    /// # Errors
    /// [`InvalidMasterKey`] unless there are 32.
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidMasterKey> {
        let bytes: Zeroizing<[u8; KEY]> = Zeroizing::new(bytes.try_into().map_err(|_| InvalidMasterKey)?);
        let digest = digest(&SHA256, &[b"master key ".as_slice(), &*bytes].concat());
        let mut name = [0; NAME];
        name.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        Ok(Self { bytes, name })
    }

    /// Makes a fresh one; answers its bytes, to be kept outside the store.
    ///
    /// # Errors
    /// [`VaultError::NoRandomness`].
    pub fn generate() -> Result<Zeroizing<[u8; KEY]>, VaultError> {
        random()
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

/// A vault with the present master key, and previous ones that still open.
#[derive(Clone, Debug)]
pub struct MasterVault {
    current: MasterKey,
    previous: Vec<MasterKey>,
}

impl MasterVault {
    /// Seals with `current`; opens with any.
    pub const fn new(current: MasterKey, previous: Vec<MasterKey>) -> Self {
        Self { current, previous }
    }

    /// The data key of `sealed`, the master key's name that it was wrapped by, and the sealed secret.
    fn unwrap_key<'s>(&self, place: &SecretPlace<'_>, sealed: &'s Sealed) -> Result<(DataKey, [u8; NAME], &'s [u8]), VaultError> {
        let Some(([VERSION], rest)) = sealed.0.split_first_chunk::<1>() else { return Err(VaultError::Damaged) };
        let (name, rest) = rest.split_first_chunk::<NAME>().ok_or(VaultError::Damaged)?;
        let (wrapped, secret) = rest.split_first_chunk::<WRAPPED>().ok_or(VaultError::Damaged)?;
        let mut keys = std::iter::once(&self.current).chain(&self.previous);
        let master = keys.find(|key| key.name == *name).ok_or(VaultError::UnknownKey)?;
        let key = open_with(&master.bytes, &place.authenticated("wrap"), wrapped)?;
        let key: DataKey = Zeroizing::new(key.as_slice().try_into().map_err(|_| VaultError::Damaged)?);
        Ok((key, *name, secret))
    }

    fn wrap(&self, place: &SecretPlace<'_>, key: &DataKey, secret: &[u8]) -> Result<Sealed, VaultError> {
        let wrapped = seal_with(&self.current.bytes, &place.authenticated("wrap"), &**key)?;
        Ok(Sealed([&[VERSION][..], &self.current.name, &wrapped, secret].concat()))
    }
}

type DataKey = Zeroizing<[u8; KEY]>;

impl Vault for MasterVault {
    fn seal(&self, place: &SecretPlace<'_>, secret: &[u8]) -> Result<Sealed, VaultError> {
        let key = random()?;
        let secret = seal_with(&key, &place.authenticated("seal"), secret)?;
        self.wrap(place, &key, &secret)
    }

    fn open(&self, place: &SecretPlace<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (key, _, secret) = self.unwrap_key(place, sealed)?;
        open_with(&key, &place.authenticated("seal"), secret)
    }

    fn rewrap(&self, place: &SecretPlace<'_>, sealed: &Sealed) -> Result<Option<Sealed>, VaultError> {
        let (key, name, secret) = self.unwrap_key(place, sealed)?;
        if name == self.current.name { Ok(None) } else { self.wrap(place, &key, secret).map(Some) }
    }
}

/// A server that was given no master key: everything works that needs no secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVault;

impl Vault for NoVault {
    fn seal(&self, _: &SecretPlace<'_>, _: &[u8]) -> Result<Sealed, VaultError> {
        Err(VaultError::NoKey)
    }

    fn open(&self, _: &SecretPlace<'_>, _: &Sealed) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        Err(VaultError::NoKey)
    }

    fn rewrap(&self, _: &SecretPlace<'_>, _: &Sealed) -> Result<Option<Sealed>, VaultError> {
        Err(VaultError::NoKey)
    }
}

fn random() -> Result<DataKey, VaultError> {
    let mut bytes = Zeroizing::new([0; KEY]);
    SystemRandom::new().fill(&mut *bytes).map_err(|_| VaultError::NoRandomness)?;
    Ok(bytes)
}

fn cipher(key: &[u8; KEY]) -> Result<LessSafeKey, VaultError> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).map_err(|_| VaultError::Damaged)
}

/// Nonce, ciphertext, tag. A random nonce is safe here: a data key seals once, a master key wraps far fewer than 2^32 keys.
fn seal_with(key: &[u8; KEY], authenticated: &[u8], plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| VaultError::NoRandomness)?;
    let mut sealed = Zeroizing::new(plain.to_vec());
    let place = Aad::from(authenticated);
    let tag = cipher(key)?.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), place, &mut sealed);
    let tag = tag.map_err(|_| VaultError::Damaged)?;
    Ok([&nonce[..], &sealed, tag.as_ref()].concat())
}

fn open_with(key: &[u8; KEY], authenticated: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::Damaged)?;
    let mut plain = Zeroizing::new(sealed.to_vec());
    let place = Aad::from(authenticated);
    let opened = cipher(key)?.open_in_place(Nonce::assume_unique_for_key(*nonce), place, &mut plain);
    let length = opened.map_err(|_| VaultError::Damaged)?.len();
    plain.truncate(length);
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::{InvalidMasterKey, MasterKey, MasterVault, NoVault, Sealed, SecretPlace, Vault, VaultError};

    fn key(byte: u8) -> MasterKey {
        MasterKey::new(&[byte; 32]).unwrap()
    }

    fn place(row: &str) -> SecretPlace<'_> {
        SecretPlace { tenant: "acme", table: "hook_keys", column: "secret", row }
    }

    #[test]
    fn a_sealed_secret_opens_in_its_place_only() {
        let vault = MasterVault::new(key(1), Vec::new());
        let sealed = vault.seal(&place("1"), b"CANARY").unwrap();
        assert_eq!(*vault.open(&place("1"), &sealed).unwrap(), b"CANARY");
        for elsewhere in [
            place("2"),
            SecretPlace { tenant: "other", ..place("1") },
            SecretPlace { table: "sources", ..place("1") },
            SecretPlace { column: "url", ..place("1") },
            SecretPlace { tenant: "acmeh", table: "ook_keys", ..place("1") },
        ] {
            assert_eq!(vault.open(&elsewhere, &sealed), Err(VaultError::Damaged), "{elsewhere:?}");
        }
        let text = format!("{sealed:?} {vault:?}");
        assert!(!sealed.as_bytes().windows(6).any(|bytes| bytes == b"CANARY") && !text.contains("CANARY"));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let vault = MasterVault::new(key(1), Vec::new());
        let sealed = vault.seal(&place("1"), b"secret").unwrap();
        for at in 0..sealed.as_bytes().len() {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[at] ^= 1;
            assert!(vault.open(&place("1"), &Sealed::from_bytes(bytes)).is_err(), "byte {at}");
        }
        for length in 0..sealed.as_bytes().len() {
            assert!(vault.open(&place("1"), &Sealed::from_bytes(sealed.as_bytes()[..length].to_vec())).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_previous_master_key_opens_until_the_secret_is_wrapped_anew() {
        let old = MasterVault::new(key(1), Vec::new());
        let sealed = old.seal(&place("1"), b"secret").unwrap();
        let both = MasterVault::new(key(2), vec![key(1)]);
        assert_eq!(*both.open(&place("1"), &sealed).unwrap(), b"secret");
        let anew = both.rewrap(&place("1"), &sealed).unwrap().unwrap();
        assert_eq!(both.rewrap(&place("1"), &anew).unwrap(), None);
        let new = MasterVault::new(key(2), Vec::new());
        assert_eq!(*new.open(&place("1"), &anew).unwrap(), b"secret");
        assert_eq!(new.open(&place("1"), &sealed), Err(VaultError::UnknownKey));
        assert_eq!(both.rewrap(&place("2"), &sealed), Err(VaultError::Damaged));
    }

    #[test]
    fn the_same_secret_never_looks_the_same() {
        let vault = MasterVault::new(key(1), Vec::new());
        assert_ne!(vault.seal(&place("1"), b"secret").unwrap(), vault.seal(&place("1"), b"secret").unwrap());
    }

    #[test]
    fn without_a_master_key_nothing_is_sealed_or_opened() {
        assert_eq!(NoVault.seal(&place("1"), b"secret"), Err(VaultError::NoKey));
        assert_eq!(NoVault.open(&place("1"), &Sealed::from_bytes(Vec::new())), Err(VaultError::NoKey));
        assert_eq!(MasterKey::new(&[1; 31]).unwrap_err(), InvalidMasterKey);
        assert_eq!(MasterKey::generate().unwrap().len(), 32);
    }
}
