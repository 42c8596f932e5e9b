//! The rules of authorisation, pure: who may do what, once the rights are known and the target exists.

use domain::PrincipalId;

use crate::rights::RightsView;
use crate::{Action, Denied, DeniedReason, Permission, PrincipalKind, Role, Scopes, Target};

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) principal: &'a PrincipalId,
    pub(crate) kind: PrincipalKind,
    pub(crate) scopes: Scopes,
    /// Whether it belongs to the tenant whose owners operate the instance.
    pub(crate) in_default_tenant: bool,
}

const MISSING: Denied = Denied::Forbidden(DeniedReason::PermissionMissing);

/// Decides. What the subject may not know of is not found before anything is forbidden (conventions, "404 before 403"); whether a place exists is not decided here.
pub(crate) fn rule(subject: Subject<'_>, view: &RightsView, action: Action, target: Target<'_>) -> Result<(), Denied> {
    if !view.enabled {
        return Err(MISSING);
    }
    if !sees(subject, view, action, target) {
        return Err(Denied::NotFound);
    }
    if !suits(action, subject.kind) {
        return Err(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed));
    }
    let is_on_other = matches!(target, Target::Principal(principal) if principal != subject.principal);
    let scope = if is_on_other { action.scope_on_others() } else { action.scope() };
    if scope.is_some_and(|scope| !subject.scopes.contains(scope)) {
        return Err(Denied::Forbidden(DeniedReason::ScopeMissing));
    }
    if permits(subject, view, action, target) { Ok(()) } else { Err(MISSING) }
}

/// Whether the subject may know of the target.
fn sees(subject: Subject<'_>, view: &RightsView, action: Action, target: Target<'_>) -> bool {
    match target {
        Target::Tenant | Target::Instance => true,
        Target::Space(space) => view.sees_space(space),
        Target::Channel(channel) => view.channel(channel).is_some(),
        // Agent-self: not even an operator consumes or claims for another (seed 004, requirement 9).
        Target::Principal(principal) if is_agent_self(action) => principal == subject.principal,
        Target::Principal(principal) => principal == subject.principal || view.role.administers(),
    }
}

/// Whether only agents may, and only for themselves.
fn is_agent_self(action: Action) -> bool {
    matches!(
        action,
        Action::AgentEventsConsume
            | Action::InboxPoll
            | Action::InboxClaim
            | Action::InboxAck
            | Action::InboxRelease
            | Action::InboxHeartbeat
            | Action::StreamSubscribe
            | Action::CallbackRegister
            | Action::CallbackRotate
    )
}

/// Whether the action is for this kind of principal.
fn suits(action: Action, kind: PrincipalKind) -> bool {
    match action {
        _ if is_agent_self(action) => kind == PrincipalKind::Agent,
        Action::EventsRead => kind != PrincipalKind::Agent,
        _ => true,
    }
}

/// Whether role and grants allow the action on a target that the subject sees.
fn permits(subject: Subject<'_>, view: &RightsView, action: Action, target: Target<'_>) -> bool {
    use {Action as A, Target as T};
    match (action, target) {
        (A::MeRead, _)
        | (A::EventsRead | A::EventsScheduled | A::SpacesRead | A::GrantsRead, T::Tenant)
        | (A::SpacesRead | A::GrantsRead, T::Space(_) | T::Channel(_))
        | (A::EventsScheduled | A::ConsumersList | A::PrincipalsRead | A::TokensManage | A::GrantsRead, T::Principal(_)) => true,
        (action, T::Principal(_)) if is_agent_self(action) => true,
        // Whoever sees the principal is the principal itself or administers it.
        (A::PresenceSet | A::HooksManage, T::Principal(_)) => true,
        (A::EventsPublish, T::Tenant) => view.everywhere() >= Some(Permission::Post),
        (A::EventsPublish, T::Channel(channel)) => view.channel(channel) >= Some(Permission::Post),
        (A::ConsumersList | A::PrincipalsRead | A::PrincipalsManage | A::TokensManage | A::AuditRead, T::Tenant)
        | (A::PrincipalsManage | A::InboxRead | A::InboxManage, T::Principal(_)) => view.role.administers(),
        (A::SpacesManage | A::GrantsManage, T::Tenant) => view.everywhere() == Some(Permission::Manage),
        (A::SpacesManage | A::GrantsManage, T::Space(space)) => view.space(space.as_str()) == Some(Permission::Manage),
        (A::SpacesManage, T::Channel(channel)) => view.space(channel.space()) == Some(Permission::Manage),
        (A::GrantsManage, T::Channel(channel)) => view.channel(channel) == Some(Permission::Manage),
        (A::TenantsManage | A::AdminBackup | A::NodesRead, T::Instance) => subject.in_default_tenant && view.role == Role::Owner,
        _ => false,
    }
}
