//! What a principal may see and do, arranged for answering in nanoseconds. Pure.

use std::collections::{HashMap, HashSet};

use domain::{ChannelRef, SpaceId};

use crate::{Permission, Resource, Rights, Role};

/// Compiled rights of one principal. A principal that is gone has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RightsView {
    /// Whether the principal may act at all.
    pub(crate) enabled: bool,
    /// What it may administer.
    pub(crate) role: Role,
    everywhere: Option<Permission>,
    spaces: HashMap<SpaceId, Permission>,
    channels: HashMap<ChannelRef, Permission>,
    /// Spaces that are seen because of a grant on one of their channels.
    outlined: HashSet<SpaceId>,
}

impl RightsView {
    /// Compiles what the store answered.
    pub(crate) fn new(rights: &Rights) -> Self {
        let mut view = Self { enabled: rights.enabled, role: rights.role, ..Self::default() };
        // Owners and operators implicitly hold `manage` on `*`.
        view.everywhere = rights.role.administers().then_some(Permission::Manage);
        for (resource, permission) in &rights.grants {
            view.add(resource, *permission);
        }
        view
    }

    fn add(&mut self, resource: &Resource, permission: Permission) {
        let held = match resource {
            Resource::All => {
                self.everywhere = self.everywhere.max(Some(permission));
                return;
            }
            Resource::Space(space) => self.spaces.entry(space.clone()).or_insert(permission),
            Resource::Channel(channel) => {
                self.outlined.extend(SpaceId::parse(channel.space()));
                self.channels.entry(channel.clone()).or_insert(permission)
            }
        };
        *held = permission.max(*held);
    }

    /// The permission on everything, and on publishing without a channel.
    pub(crate) fn everywhere(&self) -> Option<Permission> {
        self.everywhere
    }

    /// The permission on a space as a whole, named by its id.
    pub(crate) fn space(&self, space: &str) -> Option<Permission> {
        self.everywhere.max(self.spaces.get(space).copied())
    }

    /// The permission on a channel.
    pub(crate) fn channel(&self, channel: &ChannelRef) -> Option<Permission> {
        let outer = self.space(channel.space());
        if outer == Some(Permission::Manage) || self.channels.is_empty() {
            return outer;
        }
        outer.max(self.channels.get(channel.as_str()).copied())
    }

    /// The permission on what a grant names.
    pub(crate) fn on(&self, resource: &Resource) -> Option<Permission> {
        match resource {
            Resource::All => self.everywhere(),
            Resource::Space(space) => self.space(space.as_str()),
            Resource::Channel(channel) => self.channel(channel),
        }
    }

    /// Whether there is anything on which the principal may hand out grants.
    pub(crate) fn manages_anything(&self) -> bool {
        let mut held = self.everywhere.iter().chain(self.spaces.values()).chain(self.channels.values());
        held.any(|permission| *permission == Permission::Manage)
    }

    /// Whether the principal may know of a space: it holds something on it, or on one of its channels.
    pub(crate) fn sees_space(&self, space: &SpaceId) -> bool {
        self.space(space.as_str()).is_some() || self.outlined.contains(space)
    }
}
