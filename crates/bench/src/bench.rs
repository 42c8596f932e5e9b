//! A run: which rows on which ground, in which order, and what they share.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::ground::{Ground, Surroundings};
use crate::report::{self, Line, Report};
use crate::rows::{self, RowName};
use crate::system;

/// The factors of `--scale`.
const FACTORS: [usize; 3] = [1, 10, 100];
/// What a measurement may take beyond its window before it counts as stuck.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is measured how, and on what. A row sees nothing else.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Rounds of each row.
    pub(crate) rounds: usize,
    /// How long one measurement takes.
    pub(crate) window: Duration,
    /// Whether this is a smoke run.
    pub(crate) quick: bool,
    /// The factor of data and connections under `--scale`.
    pub(crate) factor: Option<usize>,
    /// The server's binary.
    pub(crate) binary: PathBuf,
    /// Where temporary directories are made.
    pub(crate) directory: PathBuf,
    /// Connections that the system lets a process have.
    pub(crate) connections: usize,
    /// The client's one thread.
    pub(crate) runtime: Runtime,
}

impl Bench {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let here = build_folder()?;
        let binary = arguments.server.clone().unwrap_or_else(|| here.join(format!("doorstep{}", std::env::consts::EXE_SUFFIX)));
        let directory = arguments.dir.clone().unwrap_or(here);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::io("start a runtime"))?;
        let (rounds, window) = if arguments.quick { (1, Duration::from_millis(500)) } else { (arguments.rounds.into(), arguments.seconds) };
        let connections = system::connections_allowed();
        Ok(Self { rounds, window, quick: arguments.quick, factor: None, binary, directory, connections, runtime })
    }

    /// `full`, or a tenth of it in a smoke run.
    pub(crate) fn sized(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    /// A fresh ground with what the factor asks for around it.
    fn ground(&self) -> Result<Ground, Failure> {
        if !self.binary.is_file() {
            return Err(Failure::NoServer(self.binary.clone()));
        }
        let unit = Surroundings { events: self.sized(100_000), agents: self.sized(100), tenants: self.sized(10) };
        let factor = self.factor.unwrap_or_default();
        let surroundings = Surroundings { events: unit.events * factor, agents: unit.agents * factor, tenants: unit.tenants * factor };
        Ground::prepare(&self.binary, &self.directory, surroundings, &self.runtime)
    }

    /// Runs `measure` on the client's thread, and gives up when it is stuck.
    pub(crate) fn measure<T>(&self, what: &'static str, measure: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = PATIENCE + self.window * 3;
        self.runtime.block_on(async { tokio::time::timeout(limit, measure).await.map_err(|_| Failure::Late(what))? })
    }

    /// Calls `round` as often as there are rounds, and collects what it measures.
    pub(crate) fn each_round<T>(&self, row: RowName, mut round: impl FnMut(usize) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
        let mut measured = Vec::with_capacity(self.rounds);
        for number in 0..self.rounds {
            report::progress(row, self.factor, number + 1, self.rounds);
            measured.push(round(number)?);
        }
        Ok(measured)
    }
}

/// Measures what the command line asks for, and shows and writes the report.
pub(crate) fn run(arguments: &Arguments) -> Result<Report, Failure> {
    let load = system::load();
    report::busy(load);
    let mut bench = Bench::new(arguments)?;
    let chosen: Vec<RowName> = if arguments.rows.is_empty() { RowName::ALL.to_vec() } else { arguments.rows.clone() };
    let lines = if arguments.scale { scaled(&mut bench, &chosen)? } else { plain(&bench, &chosen)? };
    let report = Report { quick: bench.quick, rounds: bench.rounds, window: bench.window, load, lines };
    report::show(&report);
    let path = match &arguments.json {
        Some(path) => path.clone(),
        None => build_folder()?.parent().unwrap_or(Path::new(".")).join("bench.json"),
    };
    report::write(&report, &path)?;
    Ok(report)
}

/// Each row on a ground of its own.
fn plain(bench: &Bench, chosen: &[RowName]) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for row in chosen {
        let ground = if row.needs_ground() { Some(bench.ground()?) } else { None };
        lines.extend(rows::run(*row, bench, ground.as_ref())?);
    }
    Ok(lines)
}

/// All rows on one ground for each factor, since filling it takes longer than measuring.
fn scaled(bench: &mut Bench, chosen: &[RowName]) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for factor in FACTORS {
        bench.factor = Some(factor);
        let ground = bench.ground()?;
        for row in chosen.iter().filter(|row| row.needs_ground()) {
            lines.extend(rows::run(*row, bench, Some(&ground))?.into_iter().map(|line| line.at(factor)));
        }
    }
    Ok(lines)
}

/// The folder that this program lies in.
fn build_folder() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
    Ok(program.parent().unwrap_or(Path::new(".")).to_owned())
}
