//! How tenants look on the wire.

use authz::{CreatedTenant, Tenant, TenantState};
use protocol::{Open, Secret, admin};

const fn state(state: TenantState) -> admin::TenantState {
    match state {
        TenantState::Active => admin::TenantState::Active,
        TenantState::Suspended => admin::TenantState::Suspended,
        TenantState::Deleting => admin::TenantState::Deleting,
    }
}

pub(super) const fn state_of(state: admin::TenantState) -> TenantState {
    match state {
        admin::TenantState::Active => TenantState::Active,
        admin::TenantState::Suspended => TenantState::Suspended,
        admin::TenantState::Deleting => TenantState::Deleting,
    }
}

pub(super) fn tenant(tenant: Tenant) -> admin::Tenant {
    admin::Tenant {
        id: tenant.id,
        state: Open::Known(state(tenant.state)),
        head_seq: tenant.head,
        sync_epoch: tenant.epoch,
        created_at: tenant.created_at,
    }
}

/// A new tenant with its owner's secret, for the one answer that shows it.
pub(super) fn created(created: CreatedTenant) -> admin::TenantCreated {
    let secret = Secret::new(created.token.secret.reveal().to_owned());
    admin::TenantCreated { token: Some(secret), secret_shown: false, ..without_secret(&created) }
}

/// A new tenant as a repeat of the request is answered.
pub(super) fn without_secret(created: &CreatedTenant) -> admin::TenantCreated {
    admin::TenantCreated {
        tenant: tenant(created.tenant.clone()),
        owner: created.owner.id.clone(),
        token_id: created.token.record.id,
        token: None,
        secret_shown: true,
    }
}

#[cfg(test)]
mod tests {
    use authz::TenantState;

    use super::{state, state_of};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for own in [TenantState::Active, TenantState::Suspended, TenantState::Deleting] {
            assert_eq!((state(own).as_str(), state_of(state(own))), (own.as_str(), own));
        }
    }
}
