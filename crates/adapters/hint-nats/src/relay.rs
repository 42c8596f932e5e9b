//! The task that publishes what this node tells and hears what others do.

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, Subscriber};
use futures_util::StreamExt;
use sync::HintExchange;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{NatsOptions, OptionsError};

/// Well below what NATS servers take by default (1 MiB).
const MAX_BYTES: usize = 64 * 1024;
/// How long a message may wait to be taken by the connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before the first attempt to connect again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// How often a quiet connection is asked whether it lives.
const PING: Duration = Duration::from_secs(5);
/// Messages on their way to the connection, and from it: hints that do not fit are forgotten.
const CAPACITY: usize = 256;

/// Carries hints over NATS until it is cancelled.
#[derive(Clone, Copy, Debug)]
pub struct NatsRelay;

impl NatsRelay {
    /// Connects in the background, again and again when it has to. Until the servers are there, hints wait and are merged, and tails poll.
    ///
    /// # Errors
    /// [`OptionsError`] for settings that cannot work.
    pub fn start(
        options: &NatsOptions,
        exchange: Arc<HintExchange>,
        tracker: &TaskTracker,
        cancel: CancellationToken,
    ) -> Result<(), OptionsError> {
        let (servers, subject) = (options.servers()?, options.subject()?);
        let (connected, state) = watch::channel(false);
        let cap = options.reconnect_backoff_cap;
        let connect = ConnectOptions::new()
            .name(format!("doorstep/{}", options.node))
            .no_echo()
            .retry_on_initial_connect()
            .ping_interval(PING)
            .client_capacity(CAPACITY)
            .subscription_capacity(CAPACITY)
            .reconnect_delay_callback(move |attempts| pause(attempts, cap))
            .event_callback(move |event| {
                let connected = connected.clone();
                async move { note(&connected, &event) }
            });
        tracker.spawn(async move {
            // The library's futures are large.
            let carrying = Box::pin(carry(connect, servers, subject, exchange.clone(), state));
            cancel.run_until_cancelled(carrying).await;
            exchange.metrics().listening.set(0);
        });
        Ok(())
    }
}

/// The pause before an attempt: doubled each time, up to the cap.
fn pause(attempts: usize, cap: Duration) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(cap)
}

fn note(connected: &watch::Sender<bool>, event: &Event) {
    match event {
        Event::Connected => {
            connected.send_replace(true);
            tracing::info!("hints go over NATS");
        }
        Event::Disconnected | Event::Closed => {
            connected.send_replace(false);
            tracing::warn!("the connection to NATS is lost; it is tried again, and tails poll meanwhile");
        }
        // What a server says may hold an address with a password.
        _ => tracing::debug!("NATS reports something about the connection"),
    }
}

async fn carry(
    connect: ConnectOptions,
    servers: Vec<async_nats::ServerAddr>,
    subject: String,
    exchange: Arc<HintExchange>,
    state: watch::Receiver<bool>,
) {
    let (client, subscriber) = loop {
        match open(connect.clone(), &servers, &subject).await {
            Some(opened) => break opened,
            None => sleep(PATIENCE).await,
        }
    };
    tokio::join!(hear(subscriber, &exchange), tell(&client, &subject, &exchange, state.clone()), watch_over(&exchange, state));
}

async fn open(connect: ConnectOptions, servers: &[async_nats::ServerAddr], subject: &str) -> Option<(Client, Subscriber)> {
    let client = connect.connect(servers).await.ok()?;
    let subscriber = client.subscribe(subject.to_owned()).await.ok()?;
    Some((client, subscriber))
}

/// Hands on what others tell. The client subscribes anew by itself after it was disconnected.
async fn hear(mut subscriber: Subscriber, exchange: &HintExchange) {
    while let Some(message) = subscriber.next().await {
        match std::str::from_utf8(&message.payload) {
            Ok(text) => exchange.received(text),
            Err(_) => exchange.metrics().unknown.increment(),
        }
    }
}

/// Tells what waits, as long as there is a connection: without one it goes on waiting, and is merged.
async fn tell(client: &Client, subject: &str, exchange: &HintExchange, mut state: watch::Receiver<bool>) {
    loop {
        if state.wait_for(|connected| *connected).await.is_err() {
            return;
        }
        for text in exchange.next(MAX_BYTES).await {
            let is_connected = client.connection_state() == State::Connected;
            let published = timeout(PATIENCE, client.publish(subject.to_owned(), text.into())).await;
            if !is_connected || !matches!(published, Ok(Ok(()))) {
                exchange.lost();
            }
        }
    }
}

async fn watch_over(exchange: &HintExchange, mut state: watch::Receiver<bool>) {
    let mut was_connected = false;
    loop {
        let is_connected = *state.borrow_and_update();
        if is_connected && was_connected {
            exchange.metrics().reconnects.increment();
        }
        was_connected |= is_connected;
        exchange.metrics().listening.set(u64::from(is_connected));
        if state.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;

    #[test]
    fn pauses_grow_up_to_the_cap() {
        let cap = Duration::from_secs(5);
        assert_eq!(pause(1, cap), Duration::from_millis(50));
        assert_eq!(pause(3, cap), Duration::from_millis(200));
        assert_eq!([pause(50, cap), pause(usize::MAX, cap)], [cap, cap]);
        assert!((1..100).all(|attempts| pause(attempts, cap) <= pause(attempts + 1, cap)));
    }
}
