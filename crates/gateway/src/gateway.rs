//! The engine as the outside sees it: what it is made of, the life of a socket, flushing and closing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use agents::Consumers;
use authz::Authorizer;
use domain::{Clock, IdGenerator};
use protocol::{CloseCode, Secret};
use sync::{HintBus, Logs};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handshake;
use crate::metrics::Counted;
use crate::phase::{Phase, PhaseWatch};
use crate::registry::{Registry, RegistryLimits};
use crate::runner::{End, Runner};
use crate::saver::Saver;
use crate::takeover::Stripes;
use crate::waiters::Waiters;
use crate::{Backlog, Connection, DeliveryHook, InboxHints, Metrics, Settings, WindowLimits};

/// What the engine is made of.
#[expect(missing_debug_implementations, reason = "ports have no debug form")]
pub struct Parts {
    /// Who may what.
    pub authorizer: Arc<Authorizer>,
    /// The tenants' logs.
    pub logs: Arc<Logs>,
    /// The durable cursors' use cases.
    pub consumers: Arc<dyn Consumers>,
    /// What every delivery to a consumer passes.
    pub hook: Arc<dyn DeliveryHook>,
    /// Where hints about inboxes come from.
    pub hints: Arc<dyn InboxHints>,
    /// How other nodes over the same store are told of take-overs; absent when this process uses it alone.
    pub nodes: Option<Arc<dyn HintBus>>,
    /// The store's time, for the expiry of tokens and for when consumers were taken.
    pub clock: Arc<dyn Clock>,
    /// Where session ids come from.
    pub ids: Arc<dyn IdGenerator>,
    /// Limits, windows and thresholds of delivery.
    pub settings: Settings,
    /// Those of consumers.
    pub agents: agents::Settings,
}

/// The delivery engine of this process: sessions, their runners, the save ticker.
pub struct Gateway {
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) consumers: Arc<dyn Consumers>,
    pub(crate) hook: Arc<dyn DeliveryHook>,
    pub(crate) hints: Arc<dyn InboxHints>,
    pub(crate) nodes: Option<Arc<dyn HintBus>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGenerator>,
    pub(crate) settings: Settings,
    pub(crate) agents: agents::Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) saver: Saver,
    pub(crate) stripes: Stripes,
    pub(crate) waiters: Waiters,
    /// Owns what must not be left half done when a caller goes away.
    pub(crate) tasks: TaskTracker,
    phase: watch::Sender<Phase>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How often what has expired is looked for, as a part of `sync.resume_window`.
const SWEEPS_PER_WINDOW: u32 = 4;
/// At least this long between two sweeps.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);

impl Gateway {
    /// An engine without connections. Nothing is saved by itself until [`Gateway::run`].
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { authorizer, logs, consumers, hook, hints, nodes, clock, ids, settings, agents } = parts;
        let metrics = Arc::new(Metrics::default());
        let limits = RegistryLimits {
            per_owner: settings.max_connections_per_principal,
            sessions: settings.max_connections.saturating_mul(2),
            resume_window: settings.resume_window,
        };
        let registry = Registry::new(limits, Arc::clone(&metrics));
        Arc::new(Self {
            saver: Saver::new(Arc::clone(&consumers), Arc::clone(&registry), Arc::clone(&metrics)),
            stripes: Stripes::new(),
            waiters: Waiters::default(),
            tasks: TaskTracker::new(),
            phase: watch::Sender::new(Phase::Open),
            authorizer,
            logs,
            consumers,
            hook,
            hints,
            nodes,
            clock,
            ids,
            settings,
            agents,
            metrics,
            registry,
        })
    }

    /// Starts the background tasks: the save ticker (`agent.ack_persist_interval`) and the sweeper of sessions that were not resumed.
    pub fn run(self: &Arc<Self>, tasks: &TaskTracker, stop: &CancellationToken) {
        let (engine, token) = (Arc::clone(self), stop.clone());
        tasks.spawn(async move { token.run_until_cancelled(engine.keep_saving()).await });
        let (engine, token) = (Arc::clone(self), stop.clone());
        tasks.spawn(async move { token.run_until_cancelled(engine.keep_sweeping()).await });
    }

    async fn keep_saving(&self) {
        let mut ticks = interval(self.agents.ack_persist_interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looked_at = self.clock.now();
        loop {
            tokio::select! {
                _ = ticks.tick() => looked_at = self.look_for_takes(looked_at).await,
                () = self.saver.hurried() => {}
            }
            self.saver.tick().await;
        }
    }

    async fn keep_sweeping(&self) {
        let mut ticks = interval((self.settings.resume_window / SWEEPS_PER_WINDOW).max(SWEEP_PAUSE));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            self.registry.sweep(now);
        }
    }

    /// The whole life of one socket: handshake, delivery, close. Returns when the connection is gone.
    ///
    /// `credential` is the bearer token of the upgrade, if it carried one; a token in `identify` or `resume` wins over it. `remote` is
    /// the peer's address, for logs.
    pub async fn serve<C: Connection>(&self, mut connection: C, credential: Option<Secret>, remote: Option<IpAddr>) {
        let _open = Counted::new(&self.metrics, |metrics| &metrics.connections);
        let end = match self.turns_away() {
            Some(code) => End::Close(code),
            None => self.live(&mut connection, credential).await,
        };
        match end {
            End::Gone => tracing::debug!(peer.address = ?remote, "a peer is gone"),
            End::Close(code) => {
                self.metrics.closed(code);
                tracing::debug!(peer.address = ?remote, close.code = code.number(), close.name = code.name(), "a connection is closed");
                Box::pin(connection.close(code)).await;
            }
        }
    }

    async fn live<C: Connection>(&self, connection: &mut C, credential: Option<Secret>) -> End {
        // Boxed, because its state is needed once and the connection may live for weeks.
        match Box::pin(self.greet(connection, credential)).await {
            Ok(mut runner) => runner.run(connection).await,
            Err(end) => end,
        }
    }

    async fn greet<C: Connection>(&self, connection: &mut C, credential: Option<Secret>) -> Result<Box<Runner<'_>>, End> {
        let request = handshake::hear_request(self, connection).await?;
        let (attached, greeting) = handshake::admit(self, request, credential).await.map_err(End::Close)?;
        let mut runner = Box::new(Runner::new(self, attached));
        match runner.write(connection, greeting).await {
            Ok(()) => Ok(runner),
            Err(end) => {
                runner.leave(end).await;
                Err(end)
            }
        }
    }

    /// Why a new connection is not served at all.
    fn turns_away(&self) -> Option<CloseCode> {
        if self.is_leaving() {
            return Some(CloseCode::ShuttingDown);
        }
        let open = usize::try_from(self.metrics.connections.get()).unwrap_or(usize::MAX);
        (open > self.settings.max_connections).then_some(CloseCode::RateLimited)
    }

    /// Closes every connection with 4013, evenly over `over`, so that they do not all reach the other nodes at once. Meanwhile new ones are turned away, and polls and
    /// pages are served as ever. Returns when all were asked to leave.
    pub async fn disperse(&self, over: Duration) {
        self.enter(Phase::Dispersing, |phase| *phase == Phase::Open);
        let began = Instant::now();
        let links = self.registry.links();
        let count = u32::try_from(links.len()).unwrap_or(u32::MAX).max(1);
        for (number, link) in (0..count).zip(links) {
            // The first leaves at once, the last a little before the end.
            sleep_until(began + over.mul_f64(f64::from(number) / f64::from(count))).await;
            link.close(CloseCode::ShuttingDown);
        }
    }

    fn enter(&self, next: Phase, from: impl Fn(&Phase) -> bool) {
        self.phase.send_if_modified(|phase| {
            let enters = from(phase);
            if enters {
                *phase = next;
            }
            enters
        });
    }

    /// From now on new connections, streams and polls are turned away (4013), and waiting polls answer what they have.
    pub fn drain(&self) {
        self.enter(Phase::Draining, |phase| !phase.is_draining());
    }

    /// Saves every acknowledgement that is held in memory, taking at most `within`. Answers whether all were saved.
    pub async fn flush_all(&self, within: Duration) -> bool {
        timeout(within, self.saver.tick()).await.unwrap_or(false)
    }

    /// Closes every connection and stream with `code` and waits until they are gone, at most `within`. Answers whether all are.
    pub async fn close_all(&self, code: CloseCode, within: Duration) -> bool {
        self.phase.send_modify(|phase| {
            if !matches!(phase, Phase::Closed(_)) {
                *phase = Phase::Closed(code);
            }
        });
        let deadline = Instant::now() + within;
        loop {
            // Again and again, because a handshake may just have been completed.
            self.registry.links().iter().for_each(|link| link.close(code));
            if self.metrics.connections.get() == 0 && self.metrics.streams.get() == 0 {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(CLOSE_POLL.min(deadline - Instant::now())).await;
        }
    }

    /// Follows the phase.
    pub(crate) fn phase(&self) -> PhaseWatch {
        PhaseWatch::new(self.phase.subscribe())
    }

    /// Whether nobody new is served.
    pub(crate) fn is_draining(&self) -> bool {
        self.phase.borrow().is_draining()
    }

    /// Whether new connections are turned away.
    pub(crate) fn is_leaving(&self) -> bool {
        *self.phase.borrow() != Phase::Open
    }

    /// The bounds of a delivery window.
    pub(crate) fn window_limits(&self) -> WindowLimits {
        WindowLimits {
            max_inflight: self.agents.max_inflight_events.max(1),
            ack_timeout: self.agents.ack_timeout,
            cursor_advance_every: self.settings.cursor_advance_every,
        }
    }

    /// The settings, e.g. for the transport's `gateway.max_frame_bytes`.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How far the connected consumers are behind. Walks over the sessions: for a scrape, not for a hot path.
    pub fn backlog(&self) -> Backlog {
        self.registry.backlog(Instant::now())
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// How often closing looks whether everybody has gone.
const CLOSE_POLL: Duration = Duration::from_millis(10);
