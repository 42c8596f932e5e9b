//! Statements by name.

/// The text of `queries/<name>.sql`. Debug builds note that it is about to be executed, for the tests' check that no statement goes untested.
macro_rules! sql {
    ($name:literal) => {{
        #[cfg(debug_assertions)]
        crate::sql::note($name);
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/", $name, ".sql"))
    }};
}

pub(crate) use sql;

#[cfg(debug_assertions)]
mod executed {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

    pub(crate) fn note(name: &'static str) {
        NAMES.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// The statements that this process has executed so far, by name. Debug builds only.
    #[doc(hidden)]
    pub fn executed_statements() -> BTreeSet<&'static str> {
        NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(debug_assertions)]
pub use executed::executed_statements;
#[cfg(debug_assertions)]
pub(crate) use executed::note;
