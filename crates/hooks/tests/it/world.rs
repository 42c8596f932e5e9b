//! Hooks over the store in memory, with the real authorizer and the real vault.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use authz::{Authorizer, Caller, IdentityStore};
use domain::EventId;
use hooks::{
    Created, Delivery, Dispatcher, EveryGroup, GroupLeases, Hook, HookId, HookUrl, Hooks, HooksParts, MasterKey, MasterVault, Metrics,
    NewHook, Sender, Settings, Vault,
};
use inbox::AckState;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identities::Identities;
use crate::memory::{Memory, queue, recipient};
use crate::receivers::Receivers;

pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) receivers: Arc<Receivers>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    identities: Arc<Identities>,
    authorizer: Arc<Authorizer>,
    settings: Settings,
    stop: Mutex<CancellationToken>,
    tasks: TaskTracker,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.lock().unwrap().cancel();
    }
}

pub(crate) fn url(host: &str) -> HookUrl {
    HookUrl::parse(&format!("https://{host}/ring?token=QUERY_CANARY")).unwrap()
}

pub(crate) fn vault() -> Arc<dyn Vault> {
    Arc::new(MasterVault::new(MasterKey::new(&[3; 32]).unwrap(), Vec::new()))
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(configure: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        configure(&mut settings);
        let memory = Memory::new();
        let receivers = Arc::new(Receivers::new(memory.clock.clone()));
        Self::over(memory, receivers, Arc::new(Identities::new()), settings, vault())
    }

    /// The same store under a process that was started anew, and the same receivers.
    pub(crate) fn restart(&self) -> Self {
        self.restart_with(vault())
    }

    pub(crate) fn restart_with(&self, vault: Arc<dyn Vault>) -> Self {
        self.stop.lock().unwrap().cancel();
        let receivers = Arc::clone(&self.receivers);
        Self::over(self.memory.reopened(), receivers, Arc::clone(&self.identities), self.settings.clone(), vault)
    }

    fn over(
        memory: Arc<Memory>,
        receivers: Arc<Receivers>,
        identities: Arc<Identities>,
        settings: Settings,
        vault: Arc<dyn Vault>,
    ) -> Self {
        let world = Self::sharing(memory, receivers, identities, settings, vault, Arc::new(EveryGroup::default()));
        assert!(world.memory.bell.set(world.hooks.bell().clone()).is_ok());
        world
    }

    /// Another node over the same store, and the same receivers. Nobody tells it of news.
    pub(crate) fn beside(&self, leases: Arc<dyn GroupLeases>) -> Self {
        let (memory, receivers, identities) = (self.memory.clone(), self.receivers.clone(), self.identities.clone());
        Self::sharing(memory, receivers, identities, self.settings.clone(), vault(), leases)
    }

    fn sharing(
        memory: Arc<Memory>,
        receivers: Arc<Receivers>,
        identities: Arc<Identities>,
        settings: Settings,
        vault: Arc<dyn Vault>,
        leases: Arc<dyn GroupLeases>,
    ) -> Self {
        let identity_store: Arc<dyn IdentityStore> = identities.clone();
        let authorizer = Authorizer::new(identity_store.clone(), memory.clock.clone());
        let parts = HooksParts {
            store: memory.clone(),
            transactions: memory.clone(),
            inboxes: memory.clone(),
            logs: memory.clone(),
            tails: memory.clone(),
            authorizer: authorizer.clone(),
            identities: identity_store,
            outbound: receivers.clone(),
            vault,
            clock: memory.clock.clone(),
            ids: memory.ids.clone(),
            metrics: Arc::new(Metrics::default()),
            settings: settings.clone(),
        };
        let hooks = Hooks::sharing(parts, leases);
        let dispatcher = Arc::new(Dispatcher::new(hooks.clone()));
        let (stop, tasks) = (Mutex::default(), TaskTracker::new());
        Self { memory, receivers, hooks, dispatcher, identities, authorizer, settings, stop, tasks }
    }

    pub(crate) async fn caller(&self, id: &str) -> Caller {
        self.authorizer.authenticate(self.identities.secret(id)).await.unwrap()
    }

    /// Has dispatcher and sender run until the world ends.
    pub(crate) fn start(&self) {
        let (dispatcher, stop) = (self.dispatcher.clone(), self.stop.lock().unwrap().clone());
        self.tasks.spawn(async move { dispatcher.run(stop).await });
        self.start_sender();
    }

    pub(crate) fn start_sender(&self) {
        let (sender, stop) = (Sender::new(self.hooks.clone()), self.stop.lock().unwrap().clone());
        self.tasks.spawn(async move { sender.run(stop).await });
    }

    pub(crate) fn stop(&self) {
        let mut stop = self.stop.lock().unwrap();
        stop.cancel();
        *stop = CancellationToken::new();
    }

    /// A notify hook of an agent at a host.
    pub(crate) async fn hook(&self, agent: &str, host: &str) -> Created {
        self.hook_for(agent, host, &[]).await
    }

    pub(crate) async fn hook_for(&self, agent: &str, host: &str, queues: &[&str]) -> Created {
        let queues = queues.iter().map(|name| queue(name)).collect();
        let new = NewHook { agent: None, url: url(host), queues, ignore_presence: false };
        self.hooks.create(&self.caller(agent).await, new).await.unwrap()
    }

    pub(crate) async fn dispatch(&self) {
        self.dispatcher.look_at_all().await.unwrap();
    }

    pub(crate) fn rings(&self, hook: HookId) -> Vec<Delivery> {
        self.memory.read(|state| state.deliveries_of(hook))
    }

    pub(crate) fn stored(&self, hook: HookId) -> Hook {
        self.memory.read(|state| state.hooks[&hook].clone())
    }

    pub(crate) fn set_state(&self, agent: &str, event: EventId, to: AckState) {
        self.memory.edit(|state| state.items.get_mut(&(recipient(agent), event)).unwrap().state = to);
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The types of the log's rows of the server's own about hooks.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.memory.read(|state| {
            let rows = state.logs.values().flat_map(|log| &log.rows).filter(|row| row.event_type.as_str().starts_with("hook."));
            rows.map(|row| format!("{{{}", std::str::from_utf8(&row.body).unwrap())).collect()
        })
    }
}
