//! The store's contract: a case for each sentence of the ports' documentation, over real database files.

mod append;
mod audit;
mod backup;
mod consumers;
mod damage;
mod full;
mod identity;
mod listener;
mod opening;
mod pages;
mod retention;
mod schedule;
mod support;
mod units;
