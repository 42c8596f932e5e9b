//! Where the server's address and the token come from: flags, then the environment, then the configuration file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use client::{Client, ClientOptions, InvalidOptions};
use protocol::Secret;
use serde::Deserialize;

use crate::failure::Failure;
use crate::options::GlobalOptions;

/// The address of a server that runs with its defaults on this machine.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// The part of the process's surroundings that settings come from.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

/// What the configuration file of the client holds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
}

/// A value and where it was found.
#[derive(Debug)]
struct Found<T> {
    value: T,
    place: String,
    /// The file that it is read again from.
    file: Option<PathBuf>,
}

/// What a command needs to know to call a server.
#[derive(Debug)]
pub(crate) struct Settings {
    url: Found<String>,
    token: Option<Found<Secret>>,
    looked_in: Vec<String>,
    /// Things that deserve attention and stop nothing.
    pub(crate) warnings: Vec<String>,
}

impl Environment {
    /// The process's own.
    pub fn of_process() -> Self {
        let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: ours.collect() }
    }

    /// These variables and no others.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn configuration_file(&self) -> Option<PathBuf> {
        let base = match (self.get("XDG_CONFIG_HOME"), self.get("HOME")) {
            (Some(directory), _) => PathBuf::from(directory),
            (None, Some(home)) => Path::new(home).join(".config"),
            (None, None) => return None,
        };
        Some(base.join("doorstep").join("config.toml"))
    }
}

impl Settings {
    /// Finds address and token.
    pub(crate) fn find(options: &GlobalOptions, environment: &Environment) -> Result<Self, Failure> {
        let mut warnings = Vec::new();
        let path = environment.configuration_file();
        let file = match &path {
            Some(path) => read_file(path, &mut warnings)?,
            None => Stored::default(),
        };
        let file_name = path.as_ref().map_or_else(|| "~/.config/doorstep/config.toml".to_owned(), |path| path.display().to_string());
        let url = [
            (options.url.clone(), "--url".to_owned()),
            (environment.get("DOORSTEP_URL").map(str::to_owned), "DOORSTEP_URL".to_owned()),
            (file.url.clone(), file_name.clone()),
            (Some(DEFAULT_URL.to_owned()), "the default".to_owned()),
        ];
        let url = first(url).ok_or_else(|| Failure::Configuration("no address".to_owned()))?;
        let token = find_token(options, environment, file, &file_name)?;
        let looked_in = vec![
            "--token".to_owned(),
            "--token-file".to_owned(),
            "DOORSTEP_TOKEN".to_owned(),
            "DOORSTEP_TOKEN_FILE".to_owned(),
            format!("`token` and `token_file` in {file_name}"),
        ];
        Ok(Self { url, token, looked_in, warnings })
    }

    /// A client with the token, which has to be there.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let Some(token) = &self.token else {
            let text = format!("no token: looked in {}", self.looked_in.join(", "));
            return Err(Failure::Configuration(text));
        };
        let mut options = ClientOptions::new(&self.url.value).with_token(token.value.clone());
        options.token_file.clone_from(&token.file);
        self.build(options)
    }

    /// A client for what needs no token.
    pub(crate) fn client_without_token(&self) -> Result<Client, Failure> {
        self.build(ClientOptions::new(&self.url.value))
    }

    fn build(&self, options: ClientOptions) -> Result<Client, Failure> {
        Client::new(options).map_err(|error| {
            let place = match (&error, &self.token) {
                (InvalidOptions::Token, Some(token)) => format!("token from {}", token.place),
                _ => format!("address from {}", self.url.place),
            };
            match Failure::from(error) {
                Failure::Configuration(text) => Failure::Configuration(format!("{text} ({place})")),
                other => other,
            }
        })
    }
}

fn first<T>(places: impl IntoIterator<Item = (Option<T>, String)>) -> Option<Found<T>> {
    places.into_iter().find_map(|(value, place)| value.map(|value| Found { value, place, file: None }))
}

fn find_token(options: &GlobalOptions, environment: &Environment, file: Stored, file_name: &str) -> Result<Option<Found<Secret>>, Failure> {
    let text =
        |value: Option<String>, place: &str| value.map(|value| Found { value: Secret::new(value), place: place.to_owned(), file: None });
    if let Some(token) = &options.token {
        return Ok(Some(Found { value: token.clone(), place: "--token".to_owned(), file: None }));
    }
    if let Some(path) = &options.token_file {
        return read_token(path, "--token-file").map(Some);
    }
    if let Some(found) = text(environment.get("DOORSTEP_TOKEN").map(str::to_owned), "DOORSTEP_TOKEN") {
        return Ok(Some(found));
    }
    if let Some(path) = environment.get("DOORSTEP_TOKEN_FILE") {
        return read_token(Path::new(path), "DOORSTEP_TOKEN_FILE").map(Some);
    }
    match (file.token, file.token_file) {
        (Some(_), Some(_)) => Err(Failure::Configuration(format!("{file_name} has both `token` and `token_file`; it needs one of them"))),
        (Some(token), None) => Ok(text(Some(token), file_name)),
        (None, Some(path)) => {
            // Relative to the file that names it, so that the working directory does not matter.
            let path = Path::new(file_name).parent().map_or_else(|| path.clone(), |directory| directory.join(&path));
            read_token(&path, file_name).map(Some)
        }
        (None, None) => Ok(None),
    }
}

fn read_token(path: &Path, place: &str) -> Result<Found<Secret>, Failure> {
    let fault = |what: String| Failure::Configuration(format!("the token file {} (from {place}) {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fault(format!("cannot be read: {error}")))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(fault("is empty".to_owned()));
    }
    Ok(Found { value: Secret::new(token.to_owned()), place: path.display().to_string(), file: Some(path.to_owned()) })
}

fn read_file(path: &Path, warnings: &mut Vec<String>) -> Result<Stored, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Stored::default()),
        Err(error) => return Err(Failure::Configuration(format!("{} cannot be read: {error}", path.display()))),
    };
    let file: Stored = toml::from_str(&text).map_err(|error| {
        // The message quotes the line that is wrong, which may be the one with the token.
        let place = error.span().map_or_else(String::new, |span| format!(", line {}", line_of(&text, span.start)));
        Failure::Configuration(format!("{}{place}: {}", path.display(), error.message()))
    })?;
    if file.token.is_some() && is_readable_by_others(path) {
        warnings.push(format!("{} holds a token and can be read by other users: chmod 600 it", path.display()));
    }
    Ok(file)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use protocol::Secret;

    use super::{DEFAULT_URL, Environment, Settings};
    use crate::options::GlobalOptions;

    struct Home(tempfile::TempDir);

    impl Home {
        fn with(file: &str) -> Self {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join(".config/doorstep");
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("config.toml"), file).unwrap();
            Self(home)
        }

        fn environment(&self, variables: &[(&str, &str)]) -> Environment {
            let own = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
            Environment::of(own.chain([("HOME", self.0.path().display().to_string())]))
        }
    }

    fn token_of(settings: &Settings) -> &str {
        settings.token.as_ref().unwrap().value.expose()
    }

    fn fault(options: &GlobalOptions, environment: &Environment) -> String {
        let failure = Settings::find(options, environment).and_then(|settings| settings.client()).unwrap_err();
        assert_eq!(failure.code(), 2);
        failure.to_string()
    }

    #[test]
    fn flags_come_before_the_environment_and_that_before_the_file() {
        let home = Home::with("url = \"http://file\"\ntoken = \"t-file\"");
        let (mut options, environment) = (GlobalOptions::default(), home.environment(&[]));
        let settings = Settings::find(&options, &environment).unwrap();
        assert_eq!((settings.url.value.as_str(), token_of(&settings)), ("http://file", "t-file"));
        let environment = home.environment(&[("DOORSTEP_URL", "http://env"), ("DOORSTEP_TOKEN", "t-env")]);
        let settings = Settings::find(&options, &environment).unwrap();
        assert_eq!((settings.url.value.as_str(), token_of(&settings)), ("http://env", "t-env"));
        options.url = Some("http://flag".to_owned());
        options.token = Some(Secret::new("t-flag".to_owned()));
        let settings = Settings::find(&options, &environment).unwrap();
        assert_eq!((settings.url.value.as_str(), token_of(&settings)), ("http://flag", "t-flag"));
    }

    #[test]
    fn without_an_address_the_server_of_this_machine_is_meant() {
        let settings = Settings::find(&GlobalOptions::default(), &Environment::default()).unwrap();
        assert_eq!(settings.url.value, DEFAULT_URL);
        settings.client_without_token().unwrap();
    }

    #[test]
    fn an_address_without_its_beginning_says_what_to_write() {
        for url in ["localhost:7420", "127.0.0.1:7420", "events.example.org"] {
            let options = GlobalOptions { url: Some(url.to_owned()), token: Some(Secret::new("t".to_owned())), ..GlobalOptions::default() };
            let text = fault(&options, &Environment::default());
            assert!(text.contains("http://127.0.0.1:7420") && text.contains("--url") && !text.contains("token"), "{text}");
        }
    }

    #[test]
    fn a_missing_token_says_where_it_was_looked_for() {
        let text = fault(&GlobalOptions::default(), &Environment::of([("HOME", "/nowhere".to_owned())]));
        for place in ["--token-file", "DOORSTEP_TOKEN", "/nowhere/.config/doorstep/config.toml"] {
            assert!(text.contains(place), "{text}");
        }
    }

    #[test]
    fn a_token_file_is_read_without_its_line_end() {
        let home = Home::with("token_file = \"secret\"");
        std::fs::write(home.0.path().join(".config/doorstep/secret"), "t-secret\r\n").unwrap();
        let settings = Settings::find(&GlobalOptions::default(), &home.environment(&[])).unwrap();
        assert_eq!(token_of(&settings), "t-secret");
    }

    #[test]
    fn a_token_file_that_is_missing_or_empty_is_named() {
        let home = Home::with("");
        let path = home.0.path().join("t");
        let options = GlobalOptions { token_file: Some(path.clone()), ..GlobalOptions::default() };
        let text = fault(&options, &home.environment(&[]));
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        std::fs::write(&path, "\n").unwrap();
        assert!(fault(&options, &home.environment(&[])).contains("is empty"));
    }

    #[test]
    fn a_fault_of_the_file_is_named_with_its_line_and_never_with_the_token() {
        for (file, expected) in [("\n\ntokne = \"t-secret\"", "line 3"), ("token = t-secret", "line 1"), ("token = 5\n", "line 1")] {
            let home = Home::with(file);
            let text = fault(&GlobalOptions::default(), &home.environment(&[]));
            assert!(text.contains(expected) && !text.contains("t-secret"), "{text}");
        }
    }

    #[test]
    fn a_token_that_others_can_read_is_warned_about() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = Home::with("token = \"t\"");
        let path = home.0.path().join(".config/doorstep/config.toml");
        for (mode, warnings) in [(0o644, 1), (0o600, 0)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let settings = Settings::find(&GlobalOptions::default(), &home.environment(&[])).unwrap();
            assert_eq!(settings.warnings.len(), warnings, "{mode:o}");
        }
    }

    #[test]
    fn debug_output_shows_no_token() {
        let options = GlobalOptions { token: Some(Secret::new("t-secret".to_owned())), ..GlobalOptions::default() };
        let settings = Settings::find(&options, &Environment::default()).unwrap();
        assert!(!format!("{options:?} {settings:?}").contains("t-secret"));
    }
}
