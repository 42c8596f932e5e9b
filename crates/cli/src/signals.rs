//! Asking to stop: the first signal stops in an orderly way, the second at once.

use tokio::sync::watch;

/// How urgently the process is asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Not at all.
    #[default]
    No,
    /// As soon as what is under way is done.
    Soon,
    /// At once.
    Now,
}

/// Who may ask to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<Urgency>);

impl Stop {
    /// Asked by whoever holds the sender.
    pub(crate) fn asked_by(sender: &watch::Sender<Urgency>) -> Self {
        Self(sender.subscribe())
    }

    /// Returns when asked this urgently. Cancel safe.
    pub(crate) async fn asked(&mut self, urgency: Urgency) {
        if self.0.wait_for(|now| *now >= urgency).await.is_err() {
            // Nobody is left who could ask.
            std::future::pending::<()>().await;
        }
    }

    /// Whether stopping was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow() > Urgency::No
    }
}

/// Passes the process's signals on for as long as it is polled: SIGINT and SIGTERM, where there is such a thing.
#[cfg(unix)]
pub(crate) async fn forward(sender: &watch::Sender<Urgency>) {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        // Without handlers signals do what they do to every process.
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        more_urgent(sender);
    }
}

/// Passes Ctrl-C on for as long as it is polled.
#[cfg(not(unix))]
pub(crate) async fn forward(sender: &watch::Sender<Urgency>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        more_urgent(sender);
    }
    std::future::pending().await
}

fn more_urgent(sender: &watch::Sender<Urgency>) {
    sender.send_modify(|now| {
        *now = match *now {
            Urgency::No => Urgency::Soon,
            Urgency::Soon | Urgency::Now => Urgency::Now,
        };
    });
}
