//! Statements by name.

/// The text of `queries/<name>.sql`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/", $name, ".sql"))
    };
}

pub(crate) use sql;
