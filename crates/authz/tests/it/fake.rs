//! The identity store in memory: transactions work on a copy that takes the place of the state when they commit.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use authz::{
    AccessLogWrite, AdminTx, AnswerWrite, AuditDecision, AuditEntry, AuditFilter, AuditWrite, Channel, Credential, Grant, IdempotentAnswer,
    IdentityStore, IdentityWrite, Keyset, Principal, Resource, Rights, Role, Space, Tenant, TenantState, TokenHash, TokenRecord, TokenUse,
};
use domain::{
    Appended, BoxFuture, ChannelId, ChannelRef, GrantId, PrincipalId, Publication, Seq, SpaceId, StoreError, TenantId, Timestamp, TokenId,
    Transactions, Unit,
};

/// Everything that is stored.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) tenants: BTreeMap<TenantId, Tenant>,
    pub(crate) principals: BTreeMap<(TenantId, PrincipalId), Principal>,
    pub(crate) tokens: Vec<(TenantId, TokenRecord)>,
    pub(crate) spaces: BTreeMap<(TenantId, SpaceId), Space>,
    pub(crate) channels: BTreeMap<(TenantId, ChannelRef), Channel>,
    pub(crate) grants: Vec<(TenantId, Grant)>,
    pub(crate) audit: Vec<(TenantId, AuditEntry)>,
    pub(crate) answers: Vec<(TenantId, PrincipalId, String, IdempotentAnswer, Timestamp)>,
    pub(crate) log: Vec<(TenantId, Publication)>,
    pub(crate) uses: Vec<TokenUse>,
}

/// The store, with its faults.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) state: Mutex<State>,
    /// Every call fails.
    pub(crate) broken: AtomicBool,
    /// How often credentials and rights were read.
    pub(crate) reads: AtomicU64,
    /// Runs after the next snapshot of a credential or of rights was taken and before it is answered.
    pub(crate) meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Fake {
    fn snapshot(&self) -> Result<State, StoreError> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable);
        }
        Ok(self.state.lock().unwrap().clone())
    }

    async fn slow_snapshot(&self) -> Result<State, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let state = self.snapshot();
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        state
    }
}

fn page<T>(items: impl Iterator<Item = (String, T)>, keyset: &Keyset) -> Vec<T> {
    let after = keyset.after.clone().unwrap_or_default();
    items.filter(|(key, _)| *key > after).map(|(_, item)| item).take(keyset.limit).collect()
}

#[async_trait]
impl IdentityStore for Fake {
    async fn credential(&self, hash: &TokenHash) -> Result<Option<Credential>, StoreError> {
        let state = self.slow_snapshot().await?;
        let Some((tenant, token)) = state.tokens.iter().find(|(_, token)| token.hash == *hash) else { return Ok(None) };
        let Some(principal) = state.principals.get(&(tenant.clone(), token.principal.clone())) else { return Ok(None) };
        let tenant_state = state.tenants[tenant].state;
        Ok(Some(Credential { tenant: tenant.clone(), tenant_state, token: token.clone(), principal: principal.clone() }))
    }

    async fn rights(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Option<Rights>, StoreError> {
        let state = self.slow_snapshot().await?;
        let Some(found) = state.principals.get(&(tenant.clone(), principal.clone())) else { return Ok(None) };
        let own = state.grants.iter().filter(|(t, grant)| t == tenant && grant.principal == *principal);
        let grants = own.map(|(_, grant)| (grant.resource.clone(), grant.permission)).collect();
        Ok(Some(Rights { principal: found.id.clone(), kind: found.kind, role: found.role, enabled: found.enabled, grants }))
    }

    async fn tenant(&self, tenant: &TenantId) -> Result<Option<Tenant>, StoreError> {
        Ok(self.snapshot()?.tenants.get(tenant).cloned())
    }

    async fn tenants(&self, keyset: &Keyset) -> Result<Vec<Tenant>, StoreError> {
        Ok(page(self.snapshot()?.tenants.into_iter().map(|(id, tenant)| (id.to_string(), tenant)), keyset))
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(self.snapshot()?.principals.get(&(tenant.clone(), id.clone())).cloned())
    }

    async fn principals(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Principal>, StoreError> {
        let all = self.snapshot()?.principals.into_iter().filter(|((t, _), _)| t == tenant);
        Ok(page(all.map(|((_, id), principal)| (id.to_string(), principal)), keyset))
    }

    async fn tokens(&self, tenant: &TenantId, principal: &PrincipalId, keyset: &Keyset) -> Result<Vec<TokenRecord>, StoreError> {
        let all = self.snapshot()?.tokens.into_iter().filter(|(t, token)| t == tenant && token.principal == *principal);
        Ok(page(all.map(|(_, token)| (token.id.to_string(), token)), keyset))
    }

    async fn spaces(&self, tenant: &TenantId, keyset: &Keyset) -> Result<Vec<Space>, StoreError> {
        let all = self.snapshot()?.spaces.into_iter().filter(|((t, _), _)| t == tenant);
        Ok(page(all.map(|((_, id), space)| (id.to_string(), space)), keyset))
    }

    async fn channels(&self, tenant: &TenantId, space: &SpaceId, keyset: &Keyset) -> Result<Option<Vec<Channel>>, StoreError> {
        let state = self.snapshot()?;
        if !state.spaces.contains_key(&(tenant.clone(), space.clone())) {
            return Ok(None);
        }
        let all = state.channels.into_iter().filter(|((t, _), channel)| t == tenant && channel.space == *space);
        Ok(Some(page(all.map(|(_, channel)| (channel.id.to_string(), channel)), keyset)))
    }

    async fn channel_exists(&self, tenant: &TenantId, channel: &ChannelRef) -> Result<bool, StoreError> {
        Ok(self.snapshot()?.channels.contains_key(&(tenant.clone(), channel.clone())))
    }

    async fn grants(&self, tenant: &TenantId, principal: Option<&PrincipalId>, keyset: &Keyset) -> Result<Vec<Grant>, StoreError> {
        let all = self.snapshot()?.grants.into_iter().filter(|(t, grant)| t == tenant && principal.is_none_or(|p| grant.principal == *p));
        Ok(page(all.map(|(_, grant)| (grant.id.to_string(), grant)), keyset))
    }

    async fn audit(&self, tenant: &TenantId, filter: &AuditFilter, keyset: &Keyset) -> Result<Vec<AuditEntry>, StoreError> {
        let mut all: Vec<_> = self.snapshot()?.audit.into_iter().filter(|(t, _)| t == tenant).map(|(_, entry)| entry).collect();
        all.reverse();
        all.retain(|entry| filter.decision.is_none_or(|decision| decision == entry.decision));
        all.truncate(keyset.limit);
        Ok(all)
    }

    async fn record_denials(&self, denials: &[(TenantId, AuditEntry)]) -> Result<(), StoreError> {
        self.snapshot()?;
        let mut state = self.state.lock().unwrap();
        for (tenant, entry) in denials {
            let same = |(t, known): &&mut (TenantId, AuditEntry)| {
                t == tenant
                    && known.decision == AuditDecision::Deny
                    && (&known.actor, &known.action, &known.target, known.at) == (&entry.actor, &entry.action, &entry.target, entry.at)
            };
            match state.audit.iter_mut().find(same) {
                Some((_, known)) => known.count += entry.count,
                None => state.audit.push((tenant.clone(), entry.clone())),
            }
        }
        Ok(())
    }

    async fn touch_tokens(&self, uses: &[TokenUse]) -> Result<(), StoreError> {
        self.snapshot()?;
        self.state.lock().unwrap().uses.extend_from_slice(uses);
        Ok(())
    }

    async fn idempotent_answer(
        &self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotentAnswer>, StoreError> {
        let state = self.snapshot()?;
        let found = state.answers.into_iter().find(|(t, p, k, _, at)| t == tenant && p == principal && k == key && *at >= not_before);
        Ok(found.map(|(_, _, _, answer, _)| answer))
    }

    async fn prune(&self, audit_before: Timestamp, answers_before: Timestamp, _limit: usize) -> Result<u64, StoreError> {
        let mut state = self.state.lock().unwrap();
        let before = state.audit.len() + state.answers.len();
        state.audit.retain(|(_, entry)| entry.at >= audit_before);
        state.answers.retain(|(_, _, _, _, at)| *at >= answers_before);
        Ok((before - state.audit.len() - state.answers.len()) as u64)
    }
}

#[async_trait]
impl Transactions<dyn AdminTx> for Fake {
    async fn run(&self, _name: &'static str, mut unit: Unit<dyn AdminTx>) -> Result<(), StoreError> {
        // The first run is always undone: a unit of work that keeps something outside its transaction shows itself.
        unit(&mut Tx(self.snapshot()?)).await.ok();
        let mut tx = Tx(self.snapshot()?);
        unit(&mut tx).await?;
        *self.state.lock().unwrap() = tx.0;
        Ok(())
    }
}

/// A transaction over a copy of the state.
struct Tx(State);

impl Tx {
    fn take_grants(&mut self, tenant: &TenantId, gone: impl Fn(&Grant) -> bool) -> Vec<Grant> {
        let (taken, kept) = std::mem::take(&mut self.0.grants).into_iter().partition(|(t, grant)| t == tenant && gone(grant));
        self.0.grants = kept;
        let taken: Vec<(TenantId, Grant)> = taken;
        taken.into_iter().map(|(_, grant)| grant).collect()
    }
}

#[async_trait]
impl IdentityWrite for Tx {
    async fn principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, StoreError> {
        Ok(self.0.principals.get(&(tenant.clone(), id.clone())).cloned())
    }

    async fn owners(&mut self, tenant: &TenantId) -> Result<u64, StoreError> {
        let owners = self.0.principals.iter().filter(|((t, _), p)| t == tenant && p.enabled && p.role == Role::Owner);
        Ok(owners.count() as u64)
    }

    async fn create_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        match self.0.tenants.insert(tenant.id.clone(), tenant.clone()) {
            Some(_) => Err(StoreError::Conflict("tenant")),
            None => Ok(()),
        }
    }

    async fn set_tenant_state(&mut self, tenant: &TenantId, state: TenantState) -> Result<bool, StoreError> {
        let Some(found) = self.0.tenants.get_mut(tenant) else { return Ok(false) };
        found.state = state;
        Ok(true)
    }

    async fn create_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<(), StoreError> {
        match self.0.principals.insert((tenant.clone(), principal.id.clone()), principal.clone()) {
            Some(_) => Err(StoreError::Conflict("principal")),
            None => Ok(()),
        }
    }

    async fn update_principal(&mut self, tenant: &TenantId, principal: &Principal) -> Result<bool, StoreError> {
        let Some(found) = self.0.principals.get_mut(&(tenant.clone(), principal.id.clone())) else { return Ok(false) };
        *found = principal.clone();
        Ok(true)
    }

    async fn delete_principal(&mut self, tenant: &TenantId, id: &PrincipalId) -> Result<bool, StoreError> {
        self.0.tokens.retain(|(t, token)| t != tenant || token.principal != *id);
        self.take_grants(tenant, |grant| grant.principal == *id);
        Ok(self.0.principals.remove(&(tenant.clone(), id.clone())).is_some())
    }

    async fn live_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, now: Timestamp) -> Result<u64, StoreError> {
        let live = |token: &TokenRecord| token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now);
        let own = self.0.tokens.iter().filter(|(t, token)| t == tenant && token.principal == *principal && live(token));
        Ok(own.count() as u64)
    }

    async fn create_token(&mut self, tenant: &TenantId, token: &TokenRecord) -> Result<(), StoreError> {
        self.0.tokens.push((tenant.clone(), token.clone()));
        Ok(())
    }

    async fn revoke_token(&mut self, tenant: &TenantId, principal: &PrincipalId, id: TokenId, at: Timestamp) -> Result<bool, StoreError> {
        let found = self.0.tokens.iter_mut().find(|(t, token)| t == tenant && token.principal == *principal && token.id == id);
        let Some((_, token)) = found.filter(|(_, token)| token.revoked_at.is_none()) else { return Ok(false) };
        token.revoked_at = Some(at);
        Ok(true)
    }

    async fn revoke_tokens(&mut self, tenant: &TenantId, principal: &PrincipalId, at: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        let own = self.0.tokens.iter_mut().filter(|(t, token)| t == tenant && token.principal == *principal && token.revoked_at.is_none());
        Ok(own
            .map(|(_, token)| {
                token.revoked_at = Some(at);
                token.id
            })
            .collect())
    }

    async fn create_space(&mut self, tenant: &TenantId, space: &Space) -> Result<(), StoreError> {
        match self.0.spaces.insert((tenant.clone(), space.id.clone()), space.clone()) {
            Some(_) => Err(StoreError::Conflict("space")),
            None => Ok(()),
        }
    }

    async fn delete_space(&mut self, tenant: &TenantId, space: &SpaceId) -> Result<Option<Vec<Grant>>, StoreError> {
        if self.0.spaces.remove(&(tenant.clone(), space.clone())).is_none() {
            return Ok(None);
        }
        self.0.channels.retain(|(t, _), channel| t != tenant || channel.space != *space);
        Ok(Some(self.take_grants(tenant, |grant| match &grant.resource {
            Resource::All => false,
            Resource::Space(own) => own == space,
            Resource::Channel(channel) => channel.space() == space.as_str(),
        })))
    }

    async fn create_channel(&mut self, tenant: &TenantId, channel: &Channel) -> Result<bool, StoreError> {
        if !self.0.spaces.contains_key(&(tenant.clone(), channel.space.clone())) {
            return Ok(false);
        }
        match self.0.channels.insert((tenant.clone(), ChannelRef::new(&channel.space, &channel.id)), channel.clone()) {
            Some(_) => Err(StoreError::Conflict("channel")),
            None => Ok(true),
        }
    }

    async fn delete_channel(&mut self, tenant: &TenantId, space: &SpaceId, channel: &ChannelId) -> Result<Option<Vec<Grant>>, StoreError> {
        let name = ChannelRef::new(space, channel);
        if self.0.channels.remove(&(tenant.clone(), name.clone())).is_none() {
            return Ok(None);
        }
        Ok(Some(self.take_grants(tenant, |grant| grant.resource == Resource::Channel(name.clone()))))
    }

    async fn resource_exists(&mut self, tenant: &TenantId, resource: &Resource) -> Result<bool, StoreError> {
        Ok(match resource {
            Resource::All => true,
            Resource::Space(space) => self.0.spaces.contains_key(&(tenant.clone(), space.clone())),
            Resource::Channel(channel) => self.0.channels.contains_key(&(tenant.clone(), channel.clone())),
        })
    }

    async fn create_grant(&mut self, tenant: &TenantId, grant: &Grant) -> Result<Option<Grant>, StoreError> {
        let same = |(t, known): &&(TenantId, Grant)| {
            t == tenant && (&known.principal, &known.resource, known.permission) == (&grant.principal, &grant.resource, grant.permission)
        };
        if let Some((_, known)) = self.0.grants.iter().find(same) {
            return Ok(Some(known.clone()));
        }
        self.0.grants.push((tenant.clone(), grant.clone()));
        Ok(None)
    }

    async fn delete_grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        Ok(self.take_grants(tenant, |grant| grant.id == id).pop())
    }

    async fn grant(&mut self, tenant: &TenantId, id: GrantId) -> Result<Option<Grant>, StoreError> {
        Ok(self.0.grants.iter().find(|(t, grant)| t == tenant && grant.id == id).map(|(_, grant)| grant.clone()))
    }
}

#[async_trait]
impl AnswerWrite for Tx {
    async fn store_answer(
        &mut self,
        tenant: &TenantId,
        principal: &PrincipalId,
        key: &str,
        answer: &IdempotentAnswer,
        now: Timestamp,
        not_before: Timestamp,
    ) -> Result<(), StoreError> {
        if self.0.answers.iter().any(|(t, p, k, _, at)| t == tenant && p == principal && k == key && *at >= not_before) {
            return Err(StoreError::Conflict("key"));
        }
        self.0.answers.push((tenant.clone(), principal.clone(), key.to_owned(), answer.clone(), now));
        Ok(())
    }
}

#[async_trait]
impl AccessLogWrite for Tx {
    async fn append_access(&mut self, tenant: &TenantId, publications: &[Publication]) -> Result<Vec<Appended>, StoreError> {
        if self.0.tenants[tenant].state != TenantState::Active {
            return Err(StoreError::TenantInactive);
        }
        let mut appended = Vec::new();
        for publication in publications {
            self.0.log.push((tenant.clone(), publication.clone()));
            appended.push(Appended::New { seq: self.head(tenant).await?, id: publication.id });
        }
        Ok(appended)
    }

    async fn head(&mut self, tenant: &TenantId) -> Result<Seq, StoreError> {
        Ok(Seq::new(self.0.log.iter().filter(|(t, _)| t == tenant).count() as u64).unwrap())
    }
}

#[async_trait]
impl AuditWrite for Tx {
    async fn audit(&mut self, tenant: &TenantId, entry: &AuditEntry) -> Result<(), StoreError> {
        self.0.audit.push((tenant.clone(), entry.clone()));
        Ok(())
    }
}
