//! The store's contract: a case for each sentence of the ports' documentation, over real database files.

mod append;
mod support;
