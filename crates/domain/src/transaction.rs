//! Units of work: a closure over ports that one transaction runs as a whole or not at all.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::StoreError;

/// A boxed future, as object-safe ports need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A unit of work over the port union `Tx`. It may run several times (each on a fresh transaction), so it has no effect but the
/// transaction's and its captured result. It performs no I/O of its own.
pub type Unit<Tx> = Box<dyn for<'t> FnMut(&'t mut Tx) -> BoxFuture<'t, Result<(), StoreError>> + Send>;

/// Runs units of work atomically. `Tx` is the union of ports that the module needs, e.g. `dyn PublishTx`.
#[async_trait]
pub trait Transactions<Tx: ?Sized + Send>: Send + Sync {
    /// Runs `unit`; commits durably when it answers `Ok`, else undoes everything it did. Repeats it on [`StoreError::Transient`].
    /// `name` labels metrics and logs.
    ///
    /// # Errors
    /// The unit's own error, or the store's: [`StoreError::Overloaded`] when the bounded queue is full, [`StoreError::InDoubt`] when the
    /// commit's outcome is unknown.
    async fn run(&self, name: &'static str, unit: Unit<Tx>) -> Result<(), StoreError>;
}

/// The error of a unit of work: a use case's own refusals, or what the store said.
pub trait UnitError: From<StoreError> + Send + 'static {
    /// The store's error, when that is what it is. It decides whether the unit is repeated.
    fn store(&self) -> Option<&StoreError>;
}

impl UnitError for StoreError {
    fn store(&self) -> Option<&StoreError> {
        Some(self)
    }
}

/// Runs `unit` through `transactions` and hands out what it answers after the commit.
///
/// An `Err` of the unit undoes the transaction; `E` carries the use case's own refusals past the store.
///
/// # Errors
/// What the unit answers, or the store's error.
pub async fn run_tx<Tx, T, E, F>(transactions: &dyn Transactions<Tx>, name: &'static str, mut unit: F) -> Result<T, E>
where
    Tx: ?Sized + Send + 'static,
    T: Send + 'static,
    E: UnitError,
    F: for<'t> FnMut(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
{
    let outcome: Arc<Mutex<Option<Result<T, E>>>> = Arc::default();
    let slot = Arc::clone(&outcome);
    let wrapped: Unit<Tx> = Box::new(move |tx| {
        let future = unit(tx);
        let slot = Arc::clone(&slot);
        Box::pin(async move {
            let result = future.await;
            let verdict = match &result {
                Ok(_) => Ok(()),
                Err(error) => Err(error.store().cloned().unwrap_or(StoreError::RolledBack)),
            };
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            verdict
        })
    });
    let committed = transactions.run(name, wrapped).await;
    let answered = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (committed, answered) {
        (Ok(()), Some(answer)) => answer,
        (Err(StoreError::RolledBack), Some(Err(refusal))) => Err(refusal),
        (Err(error), _) => Err(error.into()),
        (Ok(()), None) => Err(StoreError::Unavailable.into()),
    }
}
