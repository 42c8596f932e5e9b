//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::rows::RowName;

/// What to measure, and how long.
#[derive(Debug, Parser)]
#[command(name = "doorstep-bench", about = "Measures the server against floors that are measured in the same run")]
pub(crate) struct Arguments {
    /// Rows to measure; all when none is named
    pub(crate) rows: Vec<RowName>,
    /// Rounds of each row; floor and row take turns, and medians are shown
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) rounds: u16,
    /// Seconds of each measurement
    #[arg(long, default_value = "3", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// A smoke run: one short round with a tenth of the data and of the connections
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure each row at 1, 10 and 100 times the data and connections
    #[arg(long)]
    pub(crate) scale: bool,
    /// End with status 1 when a target is missed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where the figures go as JSON [default: bench.json in the build folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// The server [default: doorstep beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// Where temporary stores are made, on the disk that is to be measured [default: the build folder]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
}

/// Reads the command line; ends the program when it cannot be understood.
pub(crate) fn read() -> Arguments {
    Arguments::parse()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=3_600.0).contains(&number) { Ok(Duration::from_secs_f64(number)) } else { Err("between 0.1 and 3600".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Arguments, seconds};
    use crate::rows::RowName;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn rows_are_named_as_in_the_table() {
        let arguments = Arguments::try_parse_from(["bench", "publish-batch", "catch-up", "--quick"]).unwrap();
        assert_eq!(arguments.rows, [RowName::PublishBatch, RowName::CatchUp]);
        assert!(Arguments::try_parse_from(["bench", "publsh"]).is_err());
    }

    #[test]
    fn a_measurement_is_neither_nothing_nor_endless() {
        assert!(seconds("0").is_err() && seconds("NaN").is_err() && seconds("1e9").is_err());
        assert_eq!(seconds("0.5").unwrap().as_millis(), 500);
    }
}
