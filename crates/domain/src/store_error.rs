//! The one error of every store port. A driver's own error never crosses a port: the adapter logs it and maps it.

use thiserror::Error;

/// Why a store could not do what it was asked.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// A uniqueness or a fence was violated; repeating the same call fails alike.
    #[error("conflict: {0}")]
    Conflict(&'static str),
    /// The transaction was rolled back for a reason that passes (serialisation, deadlock, busy). `run_tx` repeats it.
    #[error("transient failure")]
    Transient,
    /// It is unknown whether the commit happened.
    #[error("commit in doubt")]
    InDoubt,
    /// Stored data contradicts itself. Nothing of it is served.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
    /// The medium has no room. What is stored is intact; writing works again once there is room.
    #[error("storage is full")]
    Full,
    /// The bounded queue of waiting writes is full.
    #[error("too many writes are waiting")]
    Overloaded,
    /// The tenant is not active any more, or is not there.
    #[error("the tenant is not active")]
    TenantInactive,
    /// The store cannot be reached, or has been closed.
    #[error("the store is unavailable")]
    Unavailable,
    /// An abort asked for by the unit of work itself: everything it did is undone.
    #[error("rolled back by the caller")]
    RolledBack,
}
