//! The token as it is sent, and how a new one takes its place while the program runs.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use protocol::Secret;
use reqwest::header::HeaderValue;

use crate::InvalidOptions;

/// What a client authenticates with.
#[derive(Debug)]
pub(crate) struct Credential {
    /// The header, marked as sensitive, so that debug output does not show it.
    current: RwLock<Option<HeaderValue>>,
    file: Option<PathBuf>,
}

impl Credential {
    /// Begins with `token`; `file` is where a newer one is found.
    pub(crate) fn new(token: Option<&Secret>, file: Option<PathBuf>) -> Result<Self, InvalidOptions> {
        let current = token.map(|token| bearer(token.expose())).transpose()?;
        Ok(Self { current: RwLock::new(current), file })
    }

    pub(crate) fn current(&self) -> Option<HeaderValue> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the token of the file in place of `used`. `false` when there is none, or the file still has the same. A file that cannot be read at
    /// the moment, or that is being written, changes nothing.
    pub(crate) fn renew(&self, used: Option<&HeaderValue>) -> bool {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref() != used {
            // Another call was faster.
            return true;
        }
        let text = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let Some(Ok(token)) = text.as_deref().map(str::trim).map(bearer) else { return false };
        if Some(&token) == used {
            return false;
        }
        *current = Some(token);
        true
    }
}

fn bearer(text: &str) -> Result<HeaderValue, InvalidOptions> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InvalidOptions::Token);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| InvalidOptions::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
