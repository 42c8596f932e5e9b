//! Requests of which something waits: all of it in one transaction, so that the request stays atomic.

use std::sync::Arc;

use authz::Denied;
use domain::{Publication, TenantId, run_tx};

use super::plan::Planned;
use super::{Published, PublishedEvent, Publisher, SHORT_ANSWER, answer};
use crate::error::PublishError;
use crate::{PublishTx, Schedule};

impl Publisher {
    pub(super) async fn append_and_schedule(&self, tenant: &TenantId, planned: Vec<Planned>) -> Result<Published, PublishError> {
        let request = Arc::new(Request { tenant: tenant.clone(), planned });
        let published = run_tx(&*self.parts.transactions, "publish", move |tx| {
            let request = Arc::clone(&request);
            Box::pin(async move { request.write(tx).await })
        })
        .await
        .inspect_err(|error| {
            if matches!(error, PublishError::DeduplicationConflict { .. }) {
                self.parts.metrics.conflicts.add(1);
            }
        })?;
        self.parts.bell.ring();
        Ok(published)
    }
}

struct Request {
    tenant: TenantId,
    planned: Vec<Planned>,
}

impl Request {
    /// Writes in the order of the request, because the second of two equal keys is the duplicate; consecutive appends are one batch.
    async fn write(&self, tx: &mut dyn PublishTx) -> Result<Published, PublishError> {
        self.check_channels(tx).await?;
        let mut events = Vec::with_capacity(self.planned.len());
        for run in self.planned.chunk_by(|left, right| matches!((left, right), (Planned::Now(_), Planned::Now(_)))) {
            match run {
                [Planned::Later(schedule)] => events.push(self.schedule(tx, events.len(), schedule).await?),
                immediate => self.append(tx, immediate, &mut events).await?,
            }
        }
        Ok(Published { events, head: tx.log_head(&self.tenant).await?.seq })
    }

    async fn check_channels(&self, tx: &mut dyn PublishTx) -> Result<(), PublishError> {
        let mut asked = Vec::new();
        for planned in &self.planned {
            let (Planned::Now(publication) | Planned::Later(Schedule { publication, .. })) = planned;
            let Some(channel) = &publication.channel else { continue };
            if asked.contains(&channel) {
                continue;
            }
            if !tx.has_channel(&self.tenant, channel).await? {
                return Err(PublishError::Denied(Denied::NotFound));
            }
            asked.push(channel);
        }
        Ok(())
    }

    async fn schedule(&self, tx: &mut dyn PublishTx, number: usize, schedule: &Schedule) -> Result<PublishedEvent, PublishError> {
        match tx.schedule(&self.tenant, schedule).await? {
            Some(appended) => answer(number, appended, false),
            None => Ok(PublishedEvent { id: schedule.publication.id, seq: None, deduplicated: false, delivered: false }),
        }
    }

    async fn append(&self, tx: &mut dyn PublishTx, run: &[Planned], events: &mut Vec<PublishedEvent>) -> Result<(), PublishError> {
        let publications: Vec<Publication> = run.iter().cloned().map(Planned::into_publication).collect();
        let appended = tx.append(&self.tenant, &publications).await?;
        if appended.len() != publications.len() {
            return Err(SHORT_ANSWER.into());
        }
        for (appended, publication) in appended.into_iter().zip(&publications) {
            events.push(answer(events.len(), appended, publication.work.is_some())?);
        }
        Ok(())
    }
}
