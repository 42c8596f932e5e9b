//! The product through its own binary: real processes, real sockets, a real store.

mod bad_input;
mod consumers;
mod durability;
mod gateway;
mod operation;
mod people;
mod polls;
mod rights;
mod support;
