//! Where values come from: `doorstep.toml`, then the environment, then flags. All faults are reported together.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Config;
use super::schema::{Schema, SetError};
use super::value::Raw;

/// The prefix of environment variables: `DOORSTEP__AGENT__ACK_TIMEOUT=30s`.
pub(crate) const ENVIRONMENT_PREFIX: &str = "DOORSTEP__";
const FILE_NAME: &str = "doorstep.toml";

/// Where a configuration comes from.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sources {
    /// `--config`; without it `doorstep.toml` of the working directory, if there is one.
    pub file: Option<PathBuf>,
    /// Environment variables, already read: name and value.
    pub environment: Vec<(String, String)>,
    /// `key=value` from flags, the strongest.
    pub flags: Vec<(&'static str, String)>,
}

/// Everything that is wrong with a configuration, one sentence each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The faults, in the order of the sources.
    pub faults: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Reads, merges and validates.
///
/// # Errors
/// [`ConfigError`] with every fault of every source.
pub(crate) fn load(sources: &Sources) -> Result<Config, ConfigError> {
    let mut loading = Loading { config: Config::default(), faults: Vec::new() };
    loading.file(sources.file.as_deref());
    for (name, value) in &sources.environment {
        loading.variable(name, value);
    }
    for (key, value) in &sources.flags {
        loading.set("the command line", key, &Raw::Text(value.clone()));
    }
    loading.faults.extend(loading.config.contradictions());
    if loading.faults.is_empty() { Ok(loading.config) } else { Err(ConfigError { faults: loading.faults }) }
}

struct Loading {
    config: Config,
    faults: Vec<String>,
}

impl Loading {
    fn file(&mut self, given: Option<&Path>) {
        let path = given.unwrap_or(Path::new(FILE_NAME));
        let shown = path.display();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if given.is_none() && error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.faults.push(format!("{shown}: cannot be read: {error}")),
        };
        match text.parse::<toml::Table>() {
            Ok(table) => self.table(&shown.to_string(), "", table),
            Err(error) => self.faults.push(format!("{shown}: not valid TOML: {}", error.message())),
        }
    }

    fn table(&mut self, origin: &str, prefix: &str, table: toml::Table) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match value {
                toml::Value::Table(inner) => self.table(origin, &key, inner),
                value => self.set(origin, &key, &Raw::Toml(value)),
            }
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        let Some(path) = name.strip_prefix(ENVIRONMENT_PREFIX) else { return };
        let key = path.replace("__", ".").to_ascii_lowercase();
        self.set(&format!("environment variable {name}"), &key, &Raw::Text(value.to_owned()));
    }

    fn set(&mut self, origin: &str, key: &str, raw: &Raw) {
        match self.config.set(key, raw) {
            Ok(()) => {}
            Err(SetError::Expected(expected)) => self.faults.push(format!("{origin}: {key}: expected {expected}")),
            Err(SetError::UnknownKey) => {
                let hint = nearest(key).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
                self.faults.push(format!("{origin}: unknown key '{key}'{hint}"));
            }
        }
    }
}

/// The key most like `key`, if any is like it at all.
fn nearest(key: &str) -> Option<&'static str> {
    const LIKE_ENOUGH: f64 = 0.7;
    let scored = Config::keys().into_iter().map(|known| (strsim::normalized_damerau_levenshtein(key, known.name), known.name));
    scored.filter(|(score, _)| *score >= LIKE_ENOUGH).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Sources, load};

    fn file(text: &str) -> (tempfile::NamedTempFile, Sources) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let sources = Sources { file: Some(file.path().to_owned()), ..Sources::default() };
        (file, sources)
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let (_file, mut sources) = file("[agent]\nack_timeout = \"5s\"\nmax_inflight_events = 7\n[server]\nlisten = \"127.0.0.1:1\"\n");
        sources.environment =
            vec![("DOORSTEP__AGENT__ACK_TIMEOUT".into(), "6s".into()), ("DOORSTEP__SERVER__LISTEN".into(), "127.0.0.1:2".into())];
        sources.flags = vec![("server.listen", "127.0.0.1:3".into())];
        let config = load(&sources).unwrap();
        assert_eq!(config.agent.ack_timeout, Duration::from_secs(6));
        assert_eq!(config.agent.max_inflight_events, 7);
        assert_eq!(config.server.listen.port(), 3);
    }

    #[test]
    fn every_fault_is_reported_at_once_with_its_place_and_a_suggestion() {
        let (_file, mut sources) = file("[agent]\nack_timout = \"5s\"\nmax_inflight_events = \"many\"\n");
        sources.environment = vec![("DOORSTEP__NONSENSE".into(), "1".into()), ("PATH".into(), "/bin".into())];
        let faults = load(&sources).unwrap_err().faults;
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("unknown key 'agent.ack_timout'; did you mean 'agent.ack_timeout'?"), "{faults:?}");
        assert!(faults[1].contains("agent.max_inflight_events: expected a whole number"), "{faults:?}");
        assert!(faults[2].starts_with("environment variable DOORSTEP__NONSENSE: unknown key 'nonsense'"), "{faults:?}");
    }

    #[test]
    fn a_missing_file_is_a_fault_only_when_it_was_named() {
        assert!(load(&Sources::default()).is_ok());
        let sources = Sources { file: Some("no/such/doorstep.toml".into()), ..Sources::default() };
        assert!(load(&sources).unwrap_err().faults[0].contains("cannot be read"));
    }
}
