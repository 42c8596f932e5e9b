//! Reasons: the second word of a refusal, where its code alone does not say enough.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Why a request was refused, beside the code.
    pub enum Reason: "a reason" {
        /// This operation is for another kind of principal.
        SubjectKindNotAllowed = "subject_kind_not_allowed",
        /// The token's scopes do not include the operation's.
        ScopeMissing = "scope_missing",
        /// The principal holds no grant that allows this.
        PermissionMissing = "permission_missing",
        /// The principal's role does not allow this.
        RoleMissing = "role_missing",
        /// The operation belongs to the operator of the whole server.
        InstanceOperatorOnly = "instance_operator_only",
        /// The tenant is suspended.
        TenantSuspended = "tenant_suspended",
        /// The tenant is being deleted.
        TenantDeleting = "tenant_deleting",
        /// The principal is disabled.
        PrincipalDisabled = "principal_disabled",
        /// The token has expired.
        TokenExpired = "token_expired",
        /// The token has been revoked.
        TokenRevoked = "token_revoked",
        /// A credential was sent in the address, where it would be logged. It is refused unread.
        CredentialInUrl = "credential_in_url",
        /// It is the tenant's last enabled owner.
        LastOwner = "last_owner",
        /// The thing still holds others.
        NotEmpty = "not_empty",
        /// The scheduled event has just been appended.
        AlreadyPromoted = "already_promoted",
        /// Another session of the agent is the one that may claim (`single_active_session`).
        SessionNotActive = "session_not_active",
        /// The receiver has not proved that it holds the key: it gave no right answer to a challenge.
        ReceiverUnverified = "receiver_unverified",
        /// No absolute URL without a fragment, or longer than 2,048 bytes.
        Malformed = "malformed",
        /// The URL's scheme is not allowed (`hooks.allow_http`).
        Scheme = "scheme",
        /// The URL carries a user name or a password.
        Userinfo = "userinfo",
        /// The URL's port is not allowed (`hooks.ports`).
        Port = "port",
        /// The URL's host is not in the list of allowed hosts (`hooks.url_allow_list`).
        NotListed = "not_listed",
        /// The URL's host has no address.
        Unresolvable = "unresolvable",
        /// The URL's host is in a network that hooks may not reach (`hooks.allow_networks`).
        Network = "network",
        /// The consumer was taken over too often (`agent.takeover_burst`).
        TakeoverStorm = "takeover_storm",
        /// The events after the position have been removed (`sync.event_retention`).
        Retention = "retention",
        /// The position lies above the log's head.
        CursorAhead = "cursor_ahead",
        /// The position belongs to another history of the log: there was a restore.
        EpochChanged = "epoch_changed",
        /// The position lies further behind than is sent over the gateway; page over REST.
        TooFarBehind = "too_far_behind",
    }
}

vocabulary! {
    /// Why a position cannot be served.
    pub enum ResyncReason: "a reason for a resync" {
        /// The events after the position have been removed (`sync.event_retention`).
        Retention = "retention",
        /// The position lies above the log's head.
        CursorAhead = "cursor_ahead",
        /// The position belongs to another history of the log: there was a restore.
        EpochChanged = "epoch_changed",
        /// The position lies further behind than is sent over the gateway; page over REST. Never said to agents.
        TooFarBehind = "too_far_behind",
    }
}

impl From<ResyncReason> for Reason {
    fn from(reason: ResyncReason) -> Self {
        match reason {
            ResyncReason::Retention => Self::Retention,
            ResyncReason::CursorAhead => Self::CursorAhead,
            ResyncReason::EpochChanged => Self::EpochChanged,
            ResyncReason::TooFarBehind => Self::TooFarBehind,
        }
    }
}
