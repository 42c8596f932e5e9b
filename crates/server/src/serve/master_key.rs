//! The key that seals what the store keeps secret: given in the configuration, or made once and kept beside the embedded store.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hooks::{MasterKey, MasterVault};

use super::write_private;
use crate::config::Config;

/// The file in the data directory that holds the key when the configuration gives none, readable by the server's user only.
pub(crate) const MASTER_KEY_FILE: &str = "master-key";
/// The same while the key is being changed: what was sealed may need either.
pub(crate) const NEXT_MASTER_KEY_FILE: &str = "master-key.next";

/// The vault of a server or of a command on a stopped one.
///
/// # Errors
/// A sentence for the operator.
pub(crate) fn vault(config: &Config) -> Result<MasterVault, String> {
    let security = &config.security;
    let mut previous = Vec::new();
    for path in &security.previous_master_key_files.0 {
        previous.push(read(path)?);
    }
    let current = match (&security.master_key.0, &security.master_key_file.0) {
        (Some(_), Some(_)) => return Err("security.master_key and security.master_key_file: give one of them".to_owned()),
        (Some(text), None) => decode(text).map_err(|fault| format!("security.master_key: {fault}"))?,
        (None, Some(path)) => read(path)?,
        (None, None) => own(&config.data.dir, &mut previous)?,
    };
    Ok(MasterVault::new(current, previous))
}

/// The key of the data directory, made when there is none; with the one that is to follow it, if a change was cut off.
fn own(data: &Path, previous: &mut Vec<MasterKey>) -> Result<MasterKey, String> {
    let (path, next) = (data.join(MASTER_KEY_FILE), data.join(NEXT_MASTER_KEY_FILE));
    if exists(&next)? {
        previous.push(read(&next)?);
    }
    if !exists(&path)? {
        make(&path)?;
    }
    read(&path)
}

/// Makes a fresh key in a file that is not there yet.
pub(crate) fn make(path: &Path) -> Result<(), String> {
    let bytes = MasterKey::generate().map_err(|error| format!("the master key cannot be made: {error}"))?;
    write_private(path, &STANDARD.encode(*bytes)).map_err(|error| format!("the master key cannot be kept in {}: {error}", path.display()))
}

/// The key in a file: 32 bytes in base64.
pub(crate) fn read(path: &Path) -> Result<MasterKey, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("the master key in {} cannot be read: {error}", path.display()))?;
    decode(&text).map_err(|fault| format!("the master key in {}: {fault}", path.display()))
}

fn decode(text: &str) -> Result<MasterKey, &'static str> {
    const EXPECTED: &str = "it must be 32 bytes in base64, as `openssl rand -base64 32` makes them";
    let bytes = STANDARD.decode(text.trim()).map_err(|_| EXPECTED)?;
    MasterKey::new(&bytes).map_err(|_| EXPECTED)
}

fn exists(path: &Path) -> Result<bool, String> {
    path.try_exists().map_err(|error| format!("{} cannot be looked at: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{MASTER_KEY_FILE, vault};
    use crate::config::Config;

    #[test]
    fn a_key_is_made_once_and_a_broken_one_is_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.data.dir = directory.path().to_owned();
        vault(&config).unwrap();
        let path = directory.path().join(MASTER_KEY_FILE);
        let made = std::fs::read_to_string(&path).unwrap();
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
        vault(&config).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
        std::fs::write(&path, "too short").unwrap();
        let fault = vault(&config).unwrap_err();
        assert!(fault.contains("32 bytes in base64") && !fault.contains("too short"), "{fault}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "too short");
    }
}
