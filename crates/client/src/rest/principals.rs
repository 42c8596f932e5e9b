//! Principals, their tokens, and who the caller is.

use domain::{PrincipalId, TokenId};
use protocol::Page;
use protocol::admin::{Me, NewPrincipal, NewToken, Principal, PrincipalChange, TokenCreated, TokenItem};
use reqwest::Method;

use super::PageRequest;
use super::list::page;
use crate::{Client, ClientError};

impl Client {
    /// Who the token is, and what it may do.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "me"])).await
    }

    /// Creates a principal.
    ///
    /// # Errors
    /// [`ClientError`]; `already_exists`.
    pub async fn create_principal(&self, principal: &NewPrincipal) -> Result<Principal, ClientError> {
        self.transport.answer(self.creating(&["v1", "principals"]).json(principal)?).await
    }

    /// The tenant's principals.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn principals(&self, request: &PageRequest) -> Result<Page<Principal>, ClientError> {
        page(&self.transport, &["v1", "principals"], request).await
    }

    /// One principal.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn principal(&self, id: &PrincipalId) -> Result<Principal, ClientError> {
        self.transport.answer(self.transport.call(Method::GET, &["v1", "principals", id.as_str()])).await
    }

    /// Changes a principal. Disabling it closes its connections.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_principal(&self, id: &PrincipalId, change: &PrincipalChange) -> Result<Principal, ClientError> {
        self.transport.answer(self.transport.call(Method::PATCH, &["v1", "principals", id.as_str()]).json(change)?).await
    }

    /// Deletes a principal with its tokens, grants and consumers.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_principal(&self, id: &PrincipalId) -> Result<(), ClientError> {
        self.transport.done(self.transport.call(Method::DELETE, &["v1", "principals", id.as_str()])).await
    }

    /// Creates a token. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_token(&self, principal: &PrincipalId, token: &NewToken) -> Result<TokenCreated, ClientError> {
        self.transport.answer(self.creating(&["v1", "principals", principal.as_str(), "tokens"]).json(token)?).await
    }

    /// The tokens of a principal, without their secrets.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tokens(&self, principal: &PrincipalId, request: &PageRequest) -> Result<Page<TokenItem>, ClientError> {
        page(&self.transport, &["v1", "principals", principal.as_str(), "tokens"], request).await
    }

    /// Revokes a token and closes its connections.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn revoke_token(&self, principal: &PrincipalId, token: TokenId) -> Result<(), ClientError> {
        let path = ["v1", "principals", principal.as_str(), "tokens", &token.to_string()];
        self.transport.done(self.transport.call(Method::DELETE, &path)).await
    }
}
