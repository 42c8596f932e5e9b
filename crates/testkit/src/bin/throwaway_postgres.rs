//! A throwaway PostgreSQL cluster for a whole run of tests: tells its URL on the first line, and goes when its standard input ends.

use std::io::{self, Write};
use std::process::ExitCode;

use doorstep_testkit::postgres::{Cluster, ClusterOptions, Durability};

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), String> {
    let cluster = Cluster::try_start(&ClusterOptions::new(Durability::None))?;
    writeln!(io::stdout(), "{}", cluster.url()).map_err(|error| error.to_string())?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(|error| error.to_string())?;
    Ok(())
}
