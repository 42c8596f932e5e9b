//! Spaces, channels and grants.

use domain::{ChannelRef, GrantId, PrincipalId, SpaceId};
use protocol::Page;
use protocol::admin::{Channel, Grant, NewChannel, NewGrant, NewSpace, Space};
use reqwest::Method;

use super::PageRequest;
use super::list::page;
use crate::{Client, ClientError};

impl Client {
    /// Creates a space.
    ///
    /// # Errors
    /// [`ClientError`]; `already_exists`.
    pub async fn create_space(&self, space: &NewSpace) -> Result<Space, ClientError> {
        self.transport.answer(self.creating(&["v1", "spaces"]).json(space)?).await
    }

    /// The tenant's spaces, as far as the caller may see them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spaces(&self, request: &PageRequest) -> Result<Page<Space>, ClientError> {
        page(&self.transport, &["v1", "spaces"], request).await
    }

    /// Deletes a space.
    ///
    /// # Errors
    /// [`ClientError`]; `state_conflict` while it has channels.
    pub async fn delete_space(&self, space: &SpaceId) -> Result<(), ClientError> {
        self.transport.done(self.transport.call(Method::DELETE, &["v1", "spaces", space.as_str()])).await
    }

    /// Creates a channel in a space.
    ///
    /// # Errors
    /// [`ClientError`]; `already_exists`.
    pub async fn create_channel(&self, space: &SpaceId, channel: &NewChannel) -> Result<Channel, ClientError> {
        self.transport.answer(self.creating(&["v1", "spaces", space.as_str(), "channels"]).json(channel)?).await
    }

    /// The channels of a space, as far as the caller may see them.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn channels(&self, space: &SpaceId, request: &PageRequest) -> Result<Page<Channel>, ClientError> {
        page(&self.transport, &["v1", "spaces", space.as_str(), "channels"], request).await
    }

    /// Deletes a channel. Its events stay.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_channel(&self, channel: &ChannelRef) -> Result<(), ClientError> {
        let path = ["v1", "spaces", channel.space(), "channels", channel.channel()];
        self.transport.done(self.transport.call(Method::DELETE, &path)).await
    }

    /// Grants a permission.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_grant(&self, grant: &NewGrant) -> Result<Grant, ClientError> {
        self.transport.answer(self.creating(&["v1", "grants"]).json(grant)?).await
    }

    /// The tenant's grants, or those of one principal.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn grants(&self, principal: Option<&PrincipalId>, request: &PageRequest) -> Result<Page<Grant>, ClientError> {
        let call = self.transport.call(Method::GET, &["v1", "grants"]).query("principal", principal);
        self.transport.answer(request.apply(call)).await
    }

    /// Takes a grant back. What is delivered from then on is judged without it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn revoke_grant(&self, grant: GrantId) -> Result<(), ClientError> {
        self.transport.done(self.transport.call(Method::DELETE, &["v1", "grants", &grant.to_string()])).await
    }
}
