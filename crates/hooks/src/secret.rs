//! Secrets of hooks: minted by the server, shown once, in the spelling of Standard Webhooks.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;
use zeroize::Zeroizing;

/// What a secret's text begins with.
const PREFIX: &str = "whsec_";
/// Bytes that the server mints.
const MINTED: usize = 32;
/// The bounds of Standard Webhooks.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The text is no secret of Standard Webhooks: `whsec_` and standard base64 of 24 to 64 bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not `whsec_` followed by the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

/// The key of an HMAC. Wiped when it is dropped, never in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Makes a fresh one with 256 bits of randomness.
    ///
    /// # Errors
    /// When the system's random source fails.
    pub fn mint() -> Result<Self, ring::error::Unspecified> {
        let mut bytes = Zeroizing::new(vec![0_u8; MINTED]);
        SystemRandom::new().fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads the text as it is shown.
    ///
    /// # Errors
    /// [`InvalidSecret`] also for what other readers forgive: missing padding, other alphabets, trailing bits.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX).ok_or(InvalidSecret)?).map_err(|_| InvalidSecret)?;
        Self::from_bytes(bytes)
    }

    /// The secret of these bytes.
    ///
    /// # Errors
    /// [`InvalidSecret`] for fewer than 24 or more than 64.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, InvalidSecret> {
        let bytes = Zeroizing::new(bytes);
        if BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(InvalidSecret) }
    }

    /// The text, to show once.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }

    /// The key's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidSecret, Secret};

    #[test]
    fn a_minted_secret_has_32_bytes_and_is_read_back() {
        let secret = Secret::mint().unwrap();
        assert_eq!(secret.bytes().len(), 32);
        assert_eq!(Secret::parse(&secret.reveal()).unwrap(), secret);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(Secret::mint().unwrap(), secret);
    }

    #[test]
    fn empty_short_long_and_oddly_spelled_secrets_are_refused() {
        let good = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert!(Secret::parse(&format!("whsec_{good}")).is_ok());
        for bad in [
            String::new(),
            "whsec_".to_owned(),
            good.to_owned(),
            format!("WHSEC_{good}"),
            format!("whsec_{good} "),
            format!("whsec_{}", &good[1..]),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA".to_owned(),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAB==".to_owned(),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La-_Sw".to_owned(),
            "whsec_c2hvcnQ=".to_owned(),
            format!("whsec_{}", "A".repeat(88)),
        ] {
            assert_eq!(Secret::parse(&bad), Err(InvalidSecret), "{bad}");
        }
    }
}
