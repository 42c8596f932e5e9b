//! Options that every command takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use protocol::Secret;

use crate::arguments::secret;

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options that every command takes.
#[derive(Clone, Debug, Default, Args)]
pub struct GlobalOptions {
    /// The server's address; else DOORSTEP_URL, then `url` in ~/.config/doorstep/config.toml, then http://127.0.0.1:7420.
    #[arg(long, global = true, value_name = "URL", help_heading = "Server and output")]
    pub(crate) url: Option<String>,
    /// The access token. Other users can see it in the list of processes: rather use a file or DOORSTEP_TOKEN.
    #[arg(long, global = true, value_name = "TOKEN", value_parser = secret, hide_env_values = true, help_heading = "Server and output")]
    pub(crate) token: Option<Secret>,
    /// A file with the access token, read again when the server does not accept it any more; else DOORSTEP_TOKEN, DOORSTEP_TOKEN_FILE, then
    /// `token` or `token_file` in ~/.config/doorstep/config.toml.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "token", help_heading = "Server and output")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print JSON, one object a line, instead of tables.
    #[arg(long, global = true, help_heading = "Server and output")]
    pub(crate) json: bool,
    /// When to use colour.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", help_heading = "Server and output")]
    pub(crate) color: ColorChoice,
}

impl GlobalOptions {
    /// Whether the flags or the environment name a server, so that the command is meant for that one.
    pub fn names_server(&self) -> bool {
        self.url.is_some() || std::env::var_os("DOORSTEP_URL").is_some_and(|url| !url.is_empty())
    }
    /// Whether a flag names a server, or the token for one.
    pub const fn names_server_by_flag(&self) -> bool {
        self.url.is_some() || self.token.is_some() || self.token_file.is_some()
    }
}
