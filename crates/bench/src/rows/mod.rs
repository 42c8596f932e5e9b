//! The rows: one file each, with what it measures and against what.

mod catch_up;
mod claim;
mod deliver;
mod fan_out;
mod floors;
mod history;
mod hook;
mod idle;
mod inbox;
mod load;
mod publish;
mod rest;
mod shared;
mod start;
mod wake;

pub(crate) use load::closed_loop;

use std::fmt;

use clap::ValueEnum;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::Ground;
use crate::report::Line;

/// A row, by the name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowName {
    /// The floors alone
    Floors,
    /// Single events over 64 connections
    Publish,
    /// 100 events in each request over 8 connections
    PublishBatch,
    /// Publish to dispatch at 500 events a second
    Deliver,
    /// A consumer far behind the head
    CatchUp,
    /// 1,000 consumers near the head
    FanOut,
    /// Poll and acknowledge over REST
    Rest,
    /// Claim and acknowledge over REST, 50 at once and one by one
    ClaimAck,
    /// Publish to a waiting claim
    WakeLatency,
    /// Claiming when millions of items are over, and beside a long read
    ClaimUnderHistory,
    /// Rings sent and signed, and publishing beside dead receivers
    Hook,
    /// 10,000 consumers and 1,000 event streams with nothing to do
    Idle,
    /// From the start of the process to ready
    Start,
    /// PostgreSQL: single events over 64 connections
    PostgresPublish,
    /// PostgreSQL: 100 events in each request over 8 connections
    PostgresPublishBatch,
    /// PostgreSQL: three consumers far behind the head, on one node and on three
    PostgresNodes,
}

impl RowName {
    /// All rows in the order in which they are measured.
    pub(crate) const ALL: [Self; 16] = [
        Self::Floors,
        Self::Publish,
        Self::PublishBatch,
        Self::Deliver,
        Self::CatchUp,
        Self::FanOut,
        Self::Rest,
        Self::ClaimAck,
        Self::WakeLatency,
        Self::ClaimUnderHistory,
        Self::Hook,
        Self::Idle,
        Self::Start,
        Self::PostgresPublish,
        Self::PostgresPublishBatch,
        Self::PostgresNodes,
    ];

    /// Whether it runs on a prepared data directory.
    pub(crate) fn needs_ground(self) -> bool {
        !matches!(self, Self::Floors | Self::PostgresPublish | Self::PostgresPublishBatch | Self::PostgresNodes)
    }
}

impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        f.pad(&name)
    }
}

/// Measures a row.
pub(crate) fn run(row: RowName, bench: &Bench, ground: Option<&Ground>) -> Result<Vec<Line>, Failure> {
    let Some(ground) = ground else { return run_alone(row, bench) };
    match row {
        RowName::Publish => publish::single(bench, ground),
        RowName::PublishBatch => publish::batches(bench, ground),
        RowName::Deliver => deliver::run(bench, ground),
        RowName::CatchUp => catch_up::run(bench, ground),
        RowName::FanOut => fan_out::run(bench, ground),
        RowName::Rest => rest::run(bench, ground),
        RowName::ClaimAck => claim::run(bench, ground),
        RowName::WakeLatency => wake::run(bench, ground),
        RowName::ClaimUnderHistory => history::run(bench, ground),
        RowName::Hook => hook::run(bench, ground),
        RowName::Idle => idle::run(bench, ground),
        RowName::Start => start::run(bench, ground),
        RowName::Floors | RowName::PostgresPublish | RowName::PostgresPublishBatch | RowName::PostgresNodes => run_alone(row, bench),
    }
}

/// Measures a row that has no data directory, or makes its own.
fn run_alone(row: RowName, bench: &Bench) -> Result<Vec<Line>, Failure> {
    match row {
        RowName::PostgresPublish => shared::single(bench),
        RowName::PostgresPublishBatch => shared::batches(bench),
        RowName::PostgresNodes => shared::nodes(bench),
        _ => floors::run(bench),
    }
}

/// Takes apart pairs of a floor and a figure.
fn unzip<T>(rounds: Vec<(f64, T)>) -> (Vec<f64>, Vec<T>) {
    rounds.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::RowName;

    #[test]
    fn every_row_that_can_be_named_is_in_a_full_run() {
        assert_eq!(RowName::value_variants(), RowName::ALL);
    }
}
