//! Events that applications hand in within their own transactions: only where they share the database with the store.

use std::sync::Arc;

use ::cluster::Cluster;
use domain::Transactions;
use intake::{IntakeParts, MoveTx, Mover, MoverParts, Publisher, StagedHint, StagedStore};

use super::ServeError;
use super::cluster::work;
use crate::store::{Engine, Store};

/// The publisher, which also lists what is staged.
pub(super) fn publisher(store: &Store, intake: &IntakeParts) -> Publisher {
    let publisher = Publisher::new(intake.clone());
    match &store.engine {
        Engine::Embedded(_) => publisher,
        Engine::Shared(shared) => publisher.with_staged(shared.clone()),
    }
}

/// Adds moving to the work that nodes share.
pub(super) fn share(cluster: &Cluster, store: &Store, intake: &IntakeParts) -> Result<(), ServeError> {
    let Engine::Shared(shared) = &store.engine else { return Ok(()) };
    let (staged, transactions): (Arc<dyn StagedStore>, Arc<dyn Transactions<dyn MoveTx>>) = (shared.clone(), shared.clone());
    let parts = MoverParts {
        staged,
        transactions,
        clock: intake.clock.clone(),
        hint: StagedHint::default(),
        bell: intake.bell.clone(),
        metrics: intake.metrics.clone(),
        settings: intake.settings.clone(),
    };
    cluster.share_work(work("intake.mover")?, move |tenure| {
        let mover = Mover::new(parts.clone());
        async move { mover.run(tenure.stop).await }
    });
    Ok(())
}
