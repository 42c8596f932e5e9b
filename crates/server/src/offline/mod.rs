//! Commands on a store that no server has open.
