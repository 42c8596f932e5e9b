//! Throwaway PostgreSQL: a cluster made from the installed server programs, and a database of its own for each test.
//!
//! A cluster ends, and its directory goes, with the process that made it, however that process ends: a watchdog waits for the end of a pipe.

mod cluster;
mod database;
mod look;
mod programs;

pub use cluster::{Cluster, ClusterOptions, Durability};
pub use database::TestDatabase;
pub use programs::ServerPrograms;
