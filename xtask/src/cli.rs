//! The command line: which task, with which options. What a task does is in the module of its name.

use clap::{Parser, Subcommand};

use crate::document::Mode;
use crate::failure::Failure;
use crate::workspace::{Selection, Workspace};
use crate::{api, arch, bench, ci, config_docs, test};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of this workspace", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the workspace against architecture/modules.toml and architecture/graph.txt
    Arch {
        /// Renew architecture/graph.txt instead of comparing it
        #[arg(long)]
        write: bool,
    },
    /// Generate api/openapi.json and api/asyncapi.json from the server
    Api {
        /// Compare with the committed files instead of writing them
        #[arg(long)]
        check: bool,
    },
    /// Generate docs/operations/configuration.md from the server
    ConfigDocs {
        /// Compare with the committed file instead of writing it
        #[arg(long)]
        check: bool,
    },
    /// Prepare what the tests need and run every one of them
    Test,
    /// Build for release and measure; rows and options are passed to the bench
    Bench {
        /// Rows to measure (default: all), and the options of the bench, such as --scale
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ROW|OPTION")]
        arguments: Vec<String>,
    },
    /// Everything that a change must pass
    Ci,
}

/// Reads the command line and runs the task that it names.
pub(crate) fn run() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let workspace = Workspace::find()?;
    match arguments.task {
        Task::Arch { write: false } => arch::check(&workspace),
        Task::Arch { write: true } => arch::write(&workspace),
        Task::Api { check } => api::run(&workspace, Mode::from_check(check), Selection::Binary),
        Task::ConfigDocs { check } => config_docs::run(&workspace, Mode::from_check(check), Selection::Binary),
        Task::Test => test::run(&workspace),
        Task::Bench { arguments } => bench::run(&workspace, &arguments),
        Task::Ci => ci::run(&workspace),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Arguments, Task};

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn bench_passes_rows_and_options_through_untouched() {
        let arguments = Arguments::try_parse_from(["xtask", "bench", "publish", "--scale", "--json", "out.json"]).unwrap();
        let Task::Bench { arguments } = arguments.task else { panic!("not the bench") };
        assert_eq!(arguments, ["publish", "--scale", "--json", "out.json"]);
        let arguments = Arguments::try_parse_from(["xtask", "bench", "--scale"]).unwrap();
        let Task::Bench { arguments } = arguments.task else { panic!("not the bench") };
        assert_eq!(arguments, ["--scale"]);
    }
}
