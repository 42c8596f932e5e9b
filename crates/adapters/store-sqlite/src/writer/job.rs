//! What waits for the writer.

use authz::AdminTx;
use domain::{Appended, BoxFuture, Publication, StoreError, TenantId, Unit};
use hooks::HookTx;
use inbox::InboxTx;
use intake::PublishTx;
use sync::AppendAnswer;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::log;
use crate::queue::Weighed;
use crate::tx::WriteTx;

/// One entry of the writer's queue.
pub(crate) enum Job {
    /// The hot path: no closure, no savepoint.
    Append(AppendJob),
    /// Anything else.
    Work(Box<dyn Work>),
}

/// A unit of work that may be attempted several times, each time on a fresh transaction.
pub(crate) trait Work: Send {
    /// Labels metrics and logs.
    fn name(&self) -> &'static str;
    /// Whether it is undone by itself when it fails. The others fail before they write; one that does not takes its whole batch back with it,
    /// which then runs again one by one. So the pages that they change are not copied first.
    fn is_undone_alone(&self) -> bool {
        true
    }
    /// Does it; what it did is undone when it answers an error.
    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError>;
    /// Hands out the outcome.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl Job {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Append(_) => "append",
            Self::Work(work) => work.name(),
        }
    }

    pub(crate) fn answer(self, outcome: Result<(), StoreError>) {
        match self {
            Self::Append(append) => append.answer(outcome),
            Self::Work(work) => work.answer(outcome),
        }
    }
}

/// What an entry weighs beside its publications.
const ENTRY: usize = 256;

impl Weighed for Job {
    fn weight(&self) -> usize {
        match self {
            Self::Append(append) => append.weight,
            Self::Work(_) => ENTRY,
        }
    }
}

/// A publish request.
pub(crate) struct AppendJob {
    tenant: TenantId,
    publications: Vec<Publication>,
    weight: usize,
    appended: Option<AppendAnswer>,
    sender: oneshot::Sender<Result<AppendAnswer, StoreError>>,
}

impl AppendJob {
    pub(crate) fn new(tenant: TenantId, publications: Vec<Publication>, sender: oneshot::Sender<Result<AppendAnswer, StoreError>>) -> Self {
        let weight = publications.iter().map(|publication| publication.body.len() + ENTRY).sum();
        Self { tenant, publications, weight, appended: None, sender }
    }

    /// Everything is decided before anything is written, so a refusal leaves nothing behind.
    pub(crate) fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        let appended: Vec<Appended> = log::append(tx, &self.tenant, &self.publications)?;
        let head = tx.log_head(&self.tenant)?.seq;
        self.appended = Some(AppendAnswer { appended, head });
        Ok(())
    }

    fn answer(self, outcome: Result<(), StoreError>) {
        let answer = outcome.and_then(|()| self.appended.ok_or(StoreError::Unavailable));
        // The publisher may have gone; the event is durable all the same.
        let _ = self.sender.send(answer);
    }
}

/// A function over the transaction, with its answer.
pub(crate) struct Call<T, F> {
    name: &'static str,
    function: F,
    value: Option<T>,
    sender: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Call<T, F> {
    pub(crate) fn new(name: &'static str, function: F, sender: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { name, function, value: None, sender }
    }
}

impl<T: Send, F: FnMut(&mut WriteTx) -> Result<T, Failure> + Send> Work for Call<T, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        self.value = Some((self.function)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { value, sender, .. } = *self;
        let answer = outcome.and_then(|()| value.ok_or(StoreError::Unavailable));
        let _ = sender.send(answer);
    }
}

/// A unit of work over a port union. Its port methods are ready at once, so the thread polls it to the end.
pub(crate) struct UnitJob<Tx: ?Sized> {
    name: &'static str,
    unit: Unit<Tx>,
    sender: oneshot::Sender<Result<(), StoreError>>,
}

impl<Tx: ?Sized> UnitJob<Tx> {
    pub(crate) fn new(name: &'static str, unit: Unit<Tx>, sender: oneshot::Sender<Result<(), StoreError>>) -> Self {
        Self { name, unit, sender }
    }
}

impl Work for UnitJob<dyn AdminTx> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        finish(self.name, (self.unit)(tx))
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let _ = self.sender.send(outcome);
    }
}

impl Work for UnitJob<dyn PublishTx> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        finish(self.name, (self.unit)(tx))
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let _ = self.sender.send(outcome);
    }
}

impl Work for UnitJob<dyn InboxTx> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_undone_alone(&self) -> bool {
        false
    }

    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        finish(self.name, (self.unit)(tx))
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let _ = self.sender.send(outcome);
    }
}

impl Work for UnitJob<dyn HookTx> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn attempt(&mut self, tx: &mut WriteTx) -> Result<(), StoreError> {
        finish(self.name, (self.unit)(tx))
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let _ = self.sender.send(outcome);
    }
}

/// Polls a unit once. One that is not ready waits for something outside its transaction, which would stop every other writer.
fn finish(name: &'static str, mut future: BoxFuture<'_, Result<(), StoreError>>) -> Result<(), StoreError> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(outcome) => outcome,
        std::task::Poll::Pending => {
            tracing::error!(unit.name = name, "a unit of work waits for something outside its transaction; it is rolled back");
            Err(StoreError::Unavailable)
        }
    }
}
