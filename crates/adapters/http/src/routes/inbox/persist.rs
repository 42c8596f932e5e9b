//! Calls that must not break off in the middle: a claim whose commit is on its way has to learn what it claimed, to give it back.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

type Call<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call that goes on in a task of its own when whoever waits for it goes away; what it answers is then dropped.
pub(super) struct Persist<T: Send + 'static> {
    call: Option<Call<T>>,
    has_begun: bool,
    gone: CancellationToken,
    tasks: TaskTracker,
}

impl<T: Send + 'static> Persist<T> {
    /// `gone` tells the call that nobody waits for it any more.
    pub(super) fn new(call: impl Future<Output = T> + Send + 'static, gone: CancellationToken, tasks: TaskTracker) -> Self {
        Self { call: Some(Box::pin(call)), has_begun: false, gone, tasks }
    }
}

impl<T: Send + 'static> Future for Persist<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        let Some(call) = self.call.as_mut() else { return Poll::Pending };
        let answer = std::task::ready!(call.as_mut().poll(cx));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl<T: Send + 'static> Drop for Persist<T> {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        self.gone.cancel();
        // Without a runtime the process is at its end.
        if let (true, Ok(runtime)) = (self.has_begun, Handle::try_current()) {
            self.tasks.spawn_on(async move { drop(call.await) }, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, Ordering};

    use futures_util::FutureExt;
    use tokio::sync::Notify;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::Persist;

    const NOT_BEGUN: u8 = 0;
    const BEGUN: u8 = 1;
    const ENDED: u8 = 2;

    fn call(stage: &Arc<AtomicU8>, go: &Arc<Notify>) -> impl Future<Output = u8> + Send + 'static {
        let (stage, go) = (Arc::clone(stage), Arc::clone(go));
        async move {
            stage.store(BEGUN, Ordering::SeqCst);
            go.notified().await;
            stage.store(ENDED, Ordering::SeqCst);
            7
        }
    }

    #[tokio::test]
    async fn a_call_that_was_left_alone_goes_on_to_its_end_and_is_told() {
        let (stage, go, tasks, gone) = (Arc::default(), Arc::default(), TaskTracker::new(), CancellationToken::new());
        let mut waiting = Box::pin(Persist::new(call(&stage, &go), gone.clone(), tasks.clone()));
        assert!(waiting.as_mut().now_or_never().is_none() && !gone.is_cancelled());
        drop(waiting);
        assert!(gone.is_cancelled());
        go.notify_one();
        tasks.close();
        tasks.wait().await;
        assert_eq!(stage.load(Ordering::SeqCst), ENDED);
    }

    #[tokio::test]
    async fn a_call_that_has_not_begun_never_does_and_one_that_ended_leaves_nothing() {
        let (stage, go, tasks) = (Arc::default(), Arc::default(), TaskTracker::new());
        drop(Persist::new(call(&stage, &go), CancellationToken::new(), tasks.clone()));
        assert_eq!((tasks.len(), stage.load(Ordering::SeqCst)), (0, NOT_BEGUN));
        go.notify_one();
        assert_eq!(Persist::new(call(&stage, &go), CancellationToken::new(), tasks.clone()).await, 7);
        assert!(tasks.is_empty());
    }
}
