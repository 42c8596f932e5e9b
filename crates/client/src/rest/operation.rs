//! Operating the instance: backup, nodes and health.

use std::time::Duration;

use protocol::Page;
use protocol::admin::{BackupReport, BackupRequest, Node};
use reqwest::Method;

use crate::{Client, ClientError};

/// How long a backup may take: it reads and writes the whole store.
const BACKUP_TIME: Duration = Duration::from_hours(6);

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It serves.
    Ready,
    /// It runs and does not serve at the moment.
    NotReady,
}

impl Client {
    /// Makes an online backup, consistent as of one instant, in a file of the server's machine.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn backup(&self, request: &BackupRequest) -> Result<BackupReport, ClientError> {
        let call = self.transport.call(Method::POST, &["v1", "admin", "backup"]).longer(BACKUP_TIME);
        self.transport.answer(call.json(request)?).await
    }

    /// The server processes over the store.
    ///
    /// # Errors
    /// [`ClientError`]; `forbidden` for everybody but the operator of the instance.
    pub async fn nodes(&self) -> Result<Page<Node>, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "nodes"])).await
    }

    /// Whether the server runs and serves. Needs no token.
    ///
    /// # Errors
    /// [`ClientError`] when nothing or something else answers.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.transport.done(self.transport.call(Method::GET, &["healthz"])).await?;
        match self.transport.done(self.transport.call(Method::GET, &["readyz"])).await {
            Ok(()) => Ok(Health::Ready),
            Err(ClientError::Problem { .. } | ClientError::Unexpected { status: 503, .. }) => Ok(Health::NotReady),
            Err(error) => Err(error),
        }
    }
}
