//! Notify hooks: who is rung where.

use domain::PrincipalId;
use protocol::{HookAttempt, NewNotifyHook, NotifyHook, NotifyHookChange, NotifyHookCreated, NotifyHookRotated, Page};
use reqwest::Method;

use super::PageRequest;
use crate::transport::Call;
use crate::{Client, ClientError};

impl Client {
    /// Registers a notify hook. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`ClientError`]; `url_refused`, `limit_reached`, `secrets_unavailable`.
    pub async fn create_notify_hook(&self, hook: &NewNotifyHook) -> Result<NotifyHookCreated, ClientError> {
        self.transport.answer(self.creating(&["v1", "notify-hooks"]).json(hook)?).await
    }

    /// The notify hooks of an agent; of the caller when `None`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn notify_hooks(&self, agent: Option<&PrincipalId>, request: &PageRequest) -> Result<Page<NotifyHook>, ClientError> {
        let call = self.transport.call(Method::GET, &["v1", "notify-hooks"]).query("agent", agent);
        self.transport.answer(request.apply(call)).await
    }

    /// Changes a notify hook. A new URL is judged like that of a new hook.
    ///
    /// # Errors
    /// [`ClientError`]; `url_refused`.
    pub async fn change_notify_hook(&self, hook: &str, change: &NotifyHookChange) -> Result<NotifyHook, ClientError> {
        self.transport.answer(self.transport.call(Method::PATCH, &["v1", "notify-hooks", hook]).json(change)?).await
    }

    /// Deletes a notify hook.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_notify_hook(&self, hook: &str) -> Result<(), ClientError> {
        self.transport.done(self.transport.call(Method::DELETE, &["v1", "notify-hooks", hook])).await
    }

    /// Gives a notify hook another secret, which is in the answer and nowhere else. The one before signs, too, for `hooks.rotation_overlap`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn rotate_notify_hook(&self, hook: &str) -> Result<NotifyHookRotated, ClientError> {
        self.transport.answer(self.of_hook(hook, "rotate")).await
    }

    /// Rings a notify hook again. What has gathered rings once per queue.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn enable_notify_hook(&self, hook: &str) -> Result<NotifyHook, ClientError> {
        self.transport.answer(self.of_hook(hook, "enable")).await
    }

    /// Stops ringing a notify hook. The inbox fills all the same.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn disable_notify_hook(&self, hook: &str) -> Result<NotifyHook, ClientError> {
        self.transport.answer(self.of_hook(hook, "disable")).await
    }

    /// Rings a notify hook once, and answers what came of it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn test_notify_hook(&self, hook: &str) -> Result<HookAttempt, ClientError> {
        self.transport.answer(self.of_hook(hook, "test")).await
    }

    /// The last attempts to ring a notify hook, the newest first; always one page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn notify_hook_deliveries(&self, hook: &str) -> Result<Page<HookAttempt>, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "notify-hooks", hook, "deliveries"])).await
    }

    fn of_hook(&self, hook: &str, action: &str) -> Call {
        self.transport.call(Method::POST, &["v1", "notify-hooks", hook, action])
    }
}
