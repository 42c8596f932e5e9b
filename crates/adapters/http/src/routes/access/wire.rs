//! How spaces, channels and grants look on the wire.

use authz::{Channel, Grant, Permission, Resource, Space};
use domain::ChannelRef;
use protocol::{Open, admin};

pub(super) fn space(space: Space) -> admin::Space {
    admin::Space { id: space.id, created_at: space.created_at }
}

pub(super) fn channel(channel: Channel) -> admin::Channel {
    admin::Channel {
        channel: ChannelRef::new(&channel.space, &channel.id),
        space: channel.space,
        id: channel.id,
        created_at: channel.created_at,
    }
}

pub(super) fn grant(grant: Grant) -> admin::Grant {
    admin::Grant {
        grant_id: grant.id,
        principal: grant.principal,
        resource: resource(grant.resource),
        permission: Open::Known(permission(grant.permission)),
        created_at: grant.created_at,
    }
}

fn resource(resource: Resource) -> admin::GrantResource {
    match resource {
        Resource::All => admin::GrantResource::All,
        Resource::Space(space) => admin::GrantResource::Space(space),
        Resource::Channel(channel) => admin::GrantResource::Channel(channel),
    }
}

pub(super) fn resource_of(resource: admin::GrantResource) -> Resource {
    match resource {
        admin::GrantResource::All => Resource::All,
        admin::GrantResource::Space(space) => Resource::Space(space),
        admin::GrantResource::Channel(channel) => Resource::Channel(channel),
    }
}

const fn permission(permission: Permission) -> admin::Permission {
    match permission {
        Permission::Read => admin::Permission::Read,
        Permission::Post => admin::Permission::Post,
        Permission::Manage => admin::Permission::Manage,
    }
}

pub(super) const fn permission_of(permission: admin::Permission) -> Permission {
    match permission {
        admin::Permission::Read => Permission::Read,
        admin::Permission::Post => Permission::Post,
        admin::Permission::Manage => Permission::Manage,
    }
}

#[cfg(test)]
mod tests {
    use authz::{Permission, Resource};

    use super::{permission, permission_of, resource, resource_of};

    #[test]
    fn the_words_of_the_core_are_the_words_on_the_wire() {
        for own in [Permission::Read, Permission::Post, Permission::Manage] {
            assert_eq!((permission(own).as_str(), permission_of(permission(own))), (own.as_str(), own));
        }
        for text in ["*", "support", "support/general"] {
            let own: Resource = text.parse().unwrap();
            assert_eq!((resource(own.clone()).to_string().as_str(), resource_of(resource(own.clone()))), (text, own));
        }
    }
}
