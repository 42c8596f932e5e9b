//! Spaces and channels.

use domain::{ChannelId, ChannelRef, PrincipalId, SpaceId};

use super::idempotency::{Idempotent, Made, Outcome};
use super::listing::{Listing, probe};
use super::scene::NOTHING;
use super::{Admin, AdminError, unit};
use crate::{AccessChange, Action, Caller, Change, Channel, Grant, Keyset, Resource, Space, Target};

/// How many pages of a listing are looked through for one page of what the caller may see.
const PAGES_LOOKED_THROUGH: usize = 20;

impl Admin {
    /// Creates a space. Needs `manage` on `*`.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn create_space(
        &self,
        caller: &Caller,
        id: SpaceId,
        idempotent: Option<Idempotent<Space>>,
    ) -> Result<Outcome<Space>, AdminError> {
        self.authorize(caller, Action::SpacesManage, Target::Tenant).await?;
        let scene = self.scene(caller);
        let (unit_scene, space) = (scene.clone(), Space { id, created_at: scene.now });
        let work = unit(move |tx| {
            let (scene, space) = (unit_scene.clone(), space.clone());
            Box::pin(async move {
                tx.create_space(&scene.tenant, &space).await.map_err(AdminError::of_creating)?;
                scene.audit(tx, Action::SpacesManage, Target::Space(&space.id).to_string(), NOTHING, Some(&space.id)).await?;
                Ok((Made::New(space), Vec::new()))
            })
        });
        self.create(caller, (Action::SpacesManage, Target::Tenant), scene, idempotent, work).await
    }

    /// The spaces that the caller may know of, by id.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn spaces(&self, caller: &Caller, keyset: &Keyset) -> Result<Listing<Space>, AdminError> {
        self.authorize(caller, Action::SpacesRead, Target::Tenant).await?;
        let view = self.authorizer.view(caller, self.clock.now()).await?;
        let mut probe = probe(keyset, self.settings().list_max);
        let wanted = probe.limit - 1;
        let mut seen: Vec<Space> = Vec::new();
        for _ in 0..PAGES_LOOKED_THROUGH {
            let page = self.store.spaces(&caller.tenant, &probe).await?;
            let page = Listing::of(&probe, page, |space| space.id.to_string());
            let next = page.next.clone();
            for space in page.items.into_iter().filter(|space| view.sees_space(&space.id)) {
                if seen.len() == wanted {
                    let next = seen.last().map(|space| space.id.to_string());
                    return Ok(Listing { items: seen, next });
                }
                seen.push(space);
            }
            let Some(next) = next else { return Ok(Listing { items: seen, next: None }) };
            probe.after = Some(next);
        }
        Ok(Listing { items: seen, next: probe.after })
    }

    /// Deletes a space with its channels and the grants on them. Needs `manage` on `*`.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn delete_space(&self, caller: &Caller, id: &SpaceId) -> Result<(), AdminError> {
        self.authorize(caller, Action::SpacesManage, Target::Space(id)).await?;
        self.authorize(caller, Action::SpacesManage, Target::Tenant).await?;
        let (scene, space, actor) = (self.scene(caller), id.clone(), caller.principal.clone());
        let work = unit(move |tx| {
            let (scene, space, actor) = (scene.clone(), space.clone(), actor.clone());
            Box::pin(async move {
                let grants = tx.delete_space(&scene.tenant, &space).await?.ok_or(AdminError::NotFound)?;
                scene.audit(tx, Action::SpacesManage, Target::Space(&space).to_string(), Some(&space), NOTHING).await?;
                let changes = removal(&grants, &actor, Change::SpaceDeleted, &Resource::Space(space));
                scene.announce(tx, &changes).await?;
                Ok(((), changes))
            })
        });
        self.change(caller, (Action::SpacesManage, Target::Space(id)), work).await
    }

    /// Creates a channel. Needs `manage` on the space.
    ///
    /// # Errors
    /// [`AdminError`]; `NotFound` when there is no such space.
    pub async fn create_channel(
        &self,
        caller: &Caller,
        space: &SpaceId,
        id: ChannelId,
        idempotent: Option<Idempotent<Channel>>,
    ) -> Result<Outcome<Channel>, AdminError> {
        self.authorize(caller, Action::SpacesManage, Target::Space(space)).await?;
        let scene = self.scene(caller);
        let channel = Channel { space: space.clone(), id, created_at: scene.now };
        let unit_scene = scene.clone();
        let work = unit(move |tx| {
            let (scene, channel) = (unit_scene.clone(), channel.clone());
            Box::pin(async move {
                if !tx.create_channel(&scene.tenant, &channel).await.map_err(AdminError::of_creating)? {
                    return Err(AdminError::NotFound);
                }
                let name = ChannelRef::new(&channel.space, &channel.id);
                scene.audit(tx, Action::SpacesManage, Target::Channel(&name).to_string(), NOTHING, Some(&name)).await?;
                Ok((Made::New(channel), Vec::new()))
            })
        });
        self.create(caller, (Action::SpacesManage, Target::Space(space)), scene, idempotent, work).await
    }

    /// The channels of a space that the caller may know of, by id. There can be fewer than asked for although more follow.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn channels(&self, caller: &Caller, space: &SpaceId, keyset: &Keyset) -> Result<Listing<Channel>, AdminError> {
        self.authorize(caller, Action::SpacesRead, Target::Space(space)).await?;
        let view = self.authorizer.view(caller, self.clock.now()).await?;
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.channels(&caller.tenant, space, &probe).await?.ok_or(AdminError::NotFound)?;
        let listing = Listing::of(&probe, items, |channel| channel.id.to_string());
        Ok(listing.filter(|channel| view.channel(&ChannelRef::new(&channel.space, &channel.id)).is_some()))
    }

    /// Deletes a channel with the grants on it. Needs `manage` on the space. What was published to it stays in the log, for its audience.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn delete_channel(&self, caller: &Caller, space: &SpaceId, id: &ChannelId) -> Result<(), AdminError> {
        let name = ChannelRef::new(space, id);
        self.authorize(caller, Action::SpacesManage, Target::Channel(&name)).await?;
        let (scene, space, id, actor) = (self.scene(caller), space.clone(), id.clone(), caller.principal.clone());
        let work = unit(move |tx| {
            let (scene, space, id, actor) = (scene.clone(), space.clone(), id.clone(), actor.clone());
            Box::pin(async move {
                let grants = tx.delete_channel(&scene.tenant, &space, &id).await?.ok_or(AdminError::NotFound)?;
                let name = ChannelRef::new(&space, &id);
                scene.audit(tx, Action::SpacesManage, Target::Channel(&name).to_string(), Some(&name), NOTHING).await?;
                let changes = removal(&grants, &actor, Change::ChannelDeleted, &Resource::Channel(name));
                scene.announce(tx, &changes).await?;
                Ok(((), changes))
            })
        });
        self.change(caller, (Action::SpacesManage, Target::Channel(&name)), work).await
    }
}

/// What follows from the removal of a space or channel: its grants went with it.
fn removal(grants: &[Grant], actor: &PrincipalId, change: Change, place: &Resource) -> Vec<AccessChange> {
    let revoked = grants.iter().map(super::grants::revocation);
    revoked.chain(std::iter::once(AccessChange::concerning(change, actor).at(place))).collect()
}
