//! How principals and tokens look on the wire.

use authz::{IssuedToken, Me, Principal, PrincipalKind, Role, Scope, Scopes, TokenRecord};
use protocol::{Open, Secret, admin};

pub(super) const fn kind(kind: PrincipalKind) -> admin::PrincipalKind {
    match kind {
        PrincipalKind::Person => admin::PrincipalKind::Person,
        PrincipalKind::App => admin::PrincipalKind::App,
        PrincipalKind::Agent => admin::PrincipalKind::Agent,
    }
}

pub(super) const fn kind_of(kind: admin::PrincipalKind) -> PrincipalKind {
    match kind {
        admin::PrincipalKind::Person => PrincipalKind::Person,
        admin::PrincipalKind::App => PrincipalKind::App,
        admin::PrincipalKind::Agent => PrincipalKind::Agent,
    }
}

const fn role(role: Role) -> admin::Role {
    match role {
        Role::Member => admin::Role::Member,
        Role::Operator => admin::Role::Operator,
        Role::Owner => admin::Role::Owner,
    }
}

pub(super) const fn role_of(role: admin::Role) -> Role {
    match role {
        admin::Role::Member => Role::Member,
        admin::Role::Operator => Role::Operator,
        admin::Role::Owner => Role::Owner,
    }
}

const fn scope(scope: Scope) -> admin::Scope {
    match scope {
        Scope::Publish => admin::Scope::Publish,
        Scope::Read => admin::Scope::Read,
        Scope::Consume => admin::Scope::Consume,
        Scope::Admin => admin::Scope::Admin,
        Scope::Instance => admin::Scope::Instance,
        Scope::InboxPoll => admin::Scope::InboxPoll,
        Scope::InboxClaim => admin::Scope::InboxClaim,
        Scope::InboxAck => admin::Scope::InboxAck,
        Scope::InboxRelease => admin::Scope::InboxRelease,
        Scope::InboxHeartbeat => admin::Scope::InboxHeartbeat,
        Scope::StreamSubscribe => admin::Scope::StreamSubscribe,
        Scope::HooksManage => admin::Scope::HooksManage,
        Scope::CallbackRegister => admin::Scope::CallbackRegister,
        Scope::CallbackRotate => admin::Scope::CallbackRotate,
    }
}

pub(super) fn scopes_of(scopes: &[admin::Scope]) -> Scopes {
    let of = |scope: &admin::Scope| match scope {
        admin::Scope::Publish => Scope::Publish,
        admin::Scope::Read => Scope::Read,
        admin::Scope::Consume => Scope::Consume,
        admin::Scope::Admin => Scope::Admin,
        admin::Scope::Instance => Scope::Instance,
        admin::Scope::InboxPoll => Scope::InboxPoll,
        admin::Scope::InboxClaim => Scope::InboxClaim,
        admin::Scope::InboxAck => Scope::InboxAck,
        admin::Scope::InboxRelease => Scope::InboxRelease,
        admin::Scope::InboxHeartbeat => Scope::InboxHeartbeat,
        admin::Scope::StreamSubscribe => Scope::StreamSubscribe,
        admin::Scope::HooksManage => Scope::HooksManage,
        admin::Scope::CallbackRegister => Scope::CallbackRegister,
        admin::Scope::CallbackRotate => Scope::CallbackRotate,
    };
    scopes.iter().map(of).collect()
}

fn scopes(scopes: Scopes) -> Vec<Open<admin::Scope>> {
    scopes.iter().map(|each| Open::Known(scope(each))).collect()
}

pub(super) fn principal(principal: Principal) -> admin::Principal {
    admin::Principal {
        id: principal.id,
        kind: Open::Known(kind(principal.kind)),
        role: Open::Known(role(principal.role)),
        display_name: principal.display_name,
        enabled: principal.enabled,
        created_at: principal.created_at,
    }
}

pub(super) fn me(me: Me) -> admin::Me {
    admin::Me {
        tenant: me.tenant,
        id: me.principal.id,
        kind: Open::Known(kind(me.principal.kind)),
        role: Open::Known(role(me.principal.role)),
        display_name: me.principal.display_name,
        token_id: me.token,
        scopes: scopes(me.scopes),
        expires_at: me.expires_at,
    }
}

pub(super) fn token(token: TokenRecord) -> admin::TokenItem {
    admin::TokenItem {
        token_id: token.id,
        prefix: token.prefix,
        scopes: scopes(token.scopes),
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: token.last_used_at,
        revoked_at: token.revoked_at,
    }
}

/// A new token with its secret, for the one answer that shows it.
pub(super) fn issued(issued: IssuedToken) -> admin::TokenCreated {
    let secret = Secret::new(issued.secret.reveal().to_owned());
    admin::TokenCreated { token: Some(secret), secret_shown: false, ..without_secret(&issued) }
}

/// A new token as a repeat of the request is answered.
pub(super) fn without_secret(issued: &IssuedToken) -> admin::TokenCreated {
    let record = &issued.record;
    admin::TokenCreated {
        token_id: record.id,
        token: None,
        secret_shown: true,
        principal: record.principal.clone(),
        prefix: record.prefix.clone(),
        scopes: scopes(record.scopes),
        created_at: record.created_at,
        expires_at: record.expires_at,
    }
}

#[cfg(test)]
mod tests {
    use authz::{PrincipalKind, Role, Scope};
    use protocol::Vocabulary;

    use super::{kind, kind_of, role, role_of, scope, scopes_of};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for own in [PrincipalKind::Person, PrincipalKind::App, PrincipalKind::Agent] {
            assert_eq!((kind(own).as_str(), kind_of(kind(own))), (own.as_str(), own));
        }
        for own in [Role::Member, Role::Operator, Role::Owner] {
            assert_eq!((role(own).as_str(), role_of(role(own))), (own.as_str(), own));
        }
        for own in Scope::ALL {
            assert_eq!(scope(own).as_str(), own.as_str());
            assert!(scopes_of(&[scope(own)]).iter().eq([own]));
        }
        assert_eq!(protocol::admin::Scope::all().len(), Scope::ALL.len());
    }
}
