//! Several servers over one PostgreSQL database, behind no load balancer at all: every rule of one server holds for many.

mod drain;
mod fleet;
mod hints;
mod moves;
mod nodes;
mod outages;
mod proxy;
mod publishing;
mod skew;
mod staging;
mod work;
