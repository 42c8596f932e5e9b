//! Token secrets: made once, shown once, stored as a digest.

use std::fmt;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

use crate::PrincipalKind;

/// SHA-256 of a token's secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// A token as its holder knows it: `dsp_<kind>_<43 random characters><6 characters of checksum>`.
///
/// The checksum lets a mistyped or cut token be told from an unknown one without a look into the store.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

/// The text is no token of ours.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[error("not a token of this product, or mistyped")]
pub struct InvalidToken;

const RANDOM_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl TokenSecret {
    /// How much of a token is kept for recognition: the product, the kind and the first random characters.
    pub const PREFIX_LENGTH: usize = 16;

    /// Makes a fresh one with 256 bits of randomness.
    ///
    /// # Errors
    /// When the system's random source fails.
    pub fn generate(kind: PrincipalKind) -> Result<Self, ring::error::Unspecified> {
        let random = SystemRandom::new();
        let mut text = format!("dsp_{}_", kind.as_str());
        let wanted = text.len() + RANDOM_LENGTH;
        while text.len() < wanted {
            let mut bytes = [0_u8; 64];
            random.fill(&mut bytes)?;
            // Rejection keeps the characters equally likely: 248 is the largest multiple of 62 in a byte.
            let fair = bytes.iter().filter(|&&b| b < 248).filter_map(|&b| ALPHABET.get(usize::from(b % 62)));
            text.extend(fair.map(|&c| char::from(c)).take(wanted - text.len()));
        }
        let checksum = checksum(&text);
        Ok(Self(text + &checksum))
    }

    /// Checks the form and the checksum.
    ///
    /// # Errors
    /// [`InvalidToken`].
    pub fn parse(text: &str) -> Result<Self, InvalidToken> {
        let rest = text.strip_prefix("dsp_").ok_or(InvalidToken)?;
        let (kind, secret) = rest.split_once('_').ok_or(InvalidToken)?;
        PrincipalKind::parse(kind).ok_or(InvalidToken)?;
        if secret.len() != RANDOM_LENGTH + CHECKSUM_LENGTH || !secret.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(InvalidToken);
        }
        let (body, sum) = text.split_at(text.len() - CHECKSUM_LENGTH);
        if checksum(body) == sum { Ok(Self(text.to_owned())) } else { Err(InvalidToken) }
    }

    /// The text, to show once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    pub fn hash(&self) -> TokenHash {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        TokenHash(hash)
    }

    /// What listings show of it.
    pub fn prefix(&self) -> &str {
        self.0.get(..Self::PREFIX_LENGTH).unwrap_or_default()
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

/// CRC-32 of `text` in base 62, six characters.
fn checksum(text: &str) -> String {
    let mut value = crc32fast::hash(text.as_bytes()) as usize;
    let mut out = [0_u8; CHECKSUM_LENGTH];
    for slot in out.iter_mut().rev() {
        *slot = ALPHABET.get(value % 62).copied().unwrap_or(b'0');
        value /= 62;
    }
    out.iter().map(|&c| char::from(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::{InvalidToken, TokenSecret};
    use crate::PrincipalKind;

    #[test]
    fn a_token_is_recognised_and_a_mistyped_one_is_not() {
        let token = TokenSecret::generate(PrincipalKind::Agent).unwrap();
        assert!(token.reveal().starts_with("dsp_agent_"));
        assert_eq!(TokenSecret::parse(token.reveal()), Ok(token.clone()));
        let mut wrong = token.reveal().to_owned();
        let last = wrong.pop().unwrap();
        wrong.push(if last == 'a' { 'b' } else { 'a' });
        assert_eq!(TokenSecret::parse(&wrong), Err(InvalidToken));
        assert_eq!(format!("{token:?}"), "TokenSecret(…)");
    }
}
