//! The one place that authenticates, authorises and admits.

mod observe;
mod upkeep;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::{Clock, PrincipalId, StoreError, TenantId, Timestamp};

use crate::cache::{Credentials, Fault, Freshness, Known, Place, RightsCell, StandingCell, TenantCell, Tenants};
use crate::denials::Denials;
use crate::rights::RightsView;
use crate::rule::{Subject, rule};
use crate::{
    Action, Admission, AuthenticationError, Caller, Credential, Denied, DeniedReason, IdentityStore, Keyset, Metrics, PrincipalKind,
    Settings, Standing, Target, TenantState, TokenHash, TokenSecret, TokenUse,
};

/// The tenant whose owners operate the instance; made on the first start.
pub const DEFAULT_TENANT: &str = "default";

/// How often a read is repeated because changes were observed while it ran.
const READS: usize = 16;

/// Authenticates, authorises, admits; remembers what that needs (see `cache`).
#[derive(Debug)]
pub struct Authorizer {
    store: StoreHandle,
    clock: Arc<dyn Clock>,
    settings: Settings,
    metrics: Metrics,
    tenants: Tenants,
    credentials: Credentials,
    denials: Denials,
    uses: Mutex<Vec<TokenUse>>,
    /// Moves with every observed change and every start of a tail, before anything is done about it.
    changes: AtomicU64,
    sessions: AtomicU64,
}

/// The store, which has nothing to show in debug output.
struct StoreHandle(Arc<dyn IdentityStore>);

impl std::fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdentityStore")
    }
}

impl Authorizer {
    /// An authorizer over `store` with the product's default settings.
    pub fn new(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Self::with_settings(store, clock, Settings::default())
    }

    /// An authorizer over `store`.
    pub fn with_settings(store: Arc<dyn IdentityStore>, clock: Arc<dyn Clock>, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            store: StoreHandle(store),
            clock,
            metrics: Metrics::default(),
            tenants: Tenants::default(),
            credentials: Credentials::new(settings.token_cache_max),
            denials: Denials::new(settings.denials_max),
            uses: Mutex::default(),
            changes: AtomicU64::new(0),
            sessions: AtomicU64::new(Freshness::NO_TAIL),
            settings,
        })
    }

    /// What was counted since the start.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Recognises a token secret.
    ///
    /// # Errors
    /// [`AuthenticationError`]; nothing in it tells an unknown token from an expired or revoked one.
    pub async fn authenticate(&self, secret: &str) -> Result<Caller, AuthenticationError> {
        let answer = self.recognise(secret).await;
        match &answer {
            Ok(caller) => self.note_use(caller),
            Err(AuthenticationError::Store(_)) => {}
            Err(_) => self.metrics.authentication_failures.increment(),
        }
        answer
    }

    async fn recognise(&self, secret: &str) -> Result<Caller, AuthenticationError> {
        // A mistyped or cut token costs no look into the store.
        let hash = TokenSecret::parse(secret).map_err(|_| AuthenticationError::Unauthenticated)?.hash();
        let known = self.credentials.get(&hash);
        if let Some(known) = &known {
            let (caller, now) = (&known.caller, self.clock.now());
            let standing = &caller.standing;
            let fresh = known.freshness.holds(standing.tenant.session(), now, self.settings.cache_ttl);
            if fresh && !standing.is_outdated() && caller.standing(now) == Standing::Good {
                self.metrics.token_cache_hits.increment();
                return Ok(caller.clone());
            }
        }
        self.metrics.token_cache_misses.increment();
        self.look_up(hash, known).await
    }

    /// Reads a token and remembers it. The standing is registered *before* the last read is trusted: a change observed earlier is in that read, one observed later finds the
    /// standing.
    async fn look_up(&self, hash: TokenHash, known: Option<Known>) -> Result<Caller, AuthenticationError> {
        if let Some(known) = &known {
            known.caller.standing.update();
        }
        let mut registered: Option<Caller> = None;
        for _ in 0..2 {
            let (changes, now) = (self.changes.load(Ordering::SeqCst), self.clock.now());
            let session = registered.as_ref().map(|caller| caller.standing.tenant.session());
            let read = self.store.0.credential(&hash).await.inspect_err(|_| {
                // Nothing was learned: whoever asks next must ask the store again.
                if let Some(known) = &known {
                    known.caller.standing.outdate();
                }
            })?;
            let Some(credential) = read else {
                self.refuse(&hash, registered.or(known.map(|known| known.caller)));
                return Err(AuthenticationError::Unauthenticated);
            };
            if let Err(refusal) = verify(&credential, now) {
                self.refuse_read(&hash, &credential, &refusal);
                return Err(refusal);
            }
            let repeated = registered.is_some();
            let caller = self.caller(&credential, registered.map(|caller| caller.standing));
            let session = session.unwrap_or_else(|| caller.standing.tenant.session());
            if repeated || self.changes.load(Ordering::SeqCst) == changes {
                self.credentials.put(hash, Known { caller: caller.clone(), freshness: Freshness::of(session, now) });
                return Ok(caller);
            }
            registered = Some(caller);
        }
        registered.ok_or(AuthenticationError::Unauthenticated)
    }

    /// The caller of a good credential, with the `standing` that was registered for it before, if any.
    fn caller(&self, credential: &Credential, standing: Option<Arc<StandingCell>>) -> Caller {
        let (token, principal) = (&credential.token, &credential.principal);
        let standing = standing.unwrap_or_else(|| {
            let tenant = self.tenants.cell(&credential.tenant);
            let rights = tenant.rights_of(&principal.id, self.settings.rights_cache_max);
            tenant.standing_of(token.id, token.hash, &principal.id, rights)
        });
        Caller {
            tenant: standing.tenant.id.clone(),
            principal: principal.id.clone(),
            kind: principal.kind,
            role: principal.role,
            token: token.id,
            scopes: token.scopes,
            expires_at: token.expires_at,
            standing,
        }
    }

    /// The token is gone: whoever still uses it loses its standing.
    fn refuse(&self, hash: &TokenHash, caller: Option<Caller>) {
        self.credentials.remove(hash);
        if let Some(caller) = caller {
            caller.standing.fail(Fault::Unauthenticated);
        }
    }

    fn refuse_read(&self, hash: &TokenHash, credential: &Credential, refusal: &AuthenticationError) {
        self.credentials.remove(hash);
        let fault = if *refusal == AuthenticationError::TenantSuspended { Fault::TenantSuspended } else { Fault::Unauthenticated };
        let standing = self.tenants.find(&credential.tenant).and_then(|tenant| tenant.standing(credential.token.id));
        if let Some(standing) = standing {
            standing.fail(fault);
        }
    }

    /// The one function that decides. Denials are audited, aggregated per actor, action and minute. Does not yield when the rights are remembered.
    ///
    /// # Errors
    /// [`Denied::NotFound`] for what the caller may not know of and for spaces and channels that do not exist, else [`Denied::Forbidden`];
    /// [`Denied::Unauthenticated`] when the caller's credential counts no more; [`Denied::Unavailable`] when the rights had to be read and could not.
    pub async fn authorize(&self, caller: &Caller, action: Action, target: Target<'_>) -> Result<(), Denied> {
        let verdict = self.decide(caller, action, target).await;
        if let Err(Denied::NotFound | Denied::Forbidden(_)) = verdict {
            self.note_denial(caller, action, target);
        }
        verdict
    }

    async fn decide(&self, caller: &Caller, action: Action, target: Target<'_>) -> Result<(), Denied> {
        let now = self.clock.now();
        match caller.standing(now) {
            Standing::Good => {}
            Standing::TenantSuspended => return Err(Denied::Forbidden(DeniedReason::TenantSuspended)),
            Standing::Unauthenticated => return Err(Denied::Unauthenticated),
        }
        let tenant = &caller.standing.tenant;
        let view = self.view(caller, now).await.map_err(unreadable)?;
        let subject = Subject {
            principal: &caller.principal,
            kind: caller.kind,
            scopes: caller.scopes,
            in_default_tenant: caller.tenant.as_str() == DEFAULT_TENANT,
        };
        let verdict = rule(subject, &view, action, target);
        let place = match target {
            _ if verdict == Err(Denied::NotFound) => return verdict,
            Target::Space(space) => Place::Space(space),
            Target::Channel(channel) => Place::Channel(channel),
            Target::Tenant | Target::Instance | Target::Principal(_) => return verdict,
        };
        if self.exists(tenant, place, now).await.map_err(unreadable)? { verdict } else { Err(Denied::NotFound) }
    }

    /// The present rights of a caller.
    pub(crate) async fn view(&self, caller: &Caller, now: Timestamp) -> Result<Arc<RightsView>, StoreError> {
        let standing = &caller.standing;
        match standing.rights.fresh(standing.tenant.session(), now, self.settings.cache_ttl) {
            Some(view) => Ok(view),
            None => self.load(&standing.tenant, &caller.principal, &standing.rights).await,
        }
    }

    /// Reads the rights of a principal into its cell.
    async fn load(&self, tenant: &TenantCell, principal: &PrincipalId, cell: &RightsCell) -> Result<Arc<RightsView>, StoreError> {
        for _ in 0..READS {
            let (generation, freshness) = (cell.generation(), Freshness::of(tenant.session(), self.clock.now()));
            self.metrics.rights_loads.increment();
            let rights = self.store.0.rights(&tenant.id, principal).await?;
            let view = Arc::new(rights.as_ref().map(RightsView::new).unwrap_or_default());
            // Nobody reports the creation of a principal: that there is none is never remembered.
            let freshness = if rights.is_some() { freshness } else { Freshness::STALE };
            if cell.install(generation, &view, freshness) {
                return Ok(view);
            }
        }
        Err(StoreError::Transient)
    }

    /// Whether a space or channel exists. That it does is remembered until its removal is observed; that it does not is never remembered.
    async fn exists(&self, tenant: &TenantCell, place: Place<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let session = tenant.session();
        if tenant.places.has(place, session, now, self.settings.cache_ttl) {
            return Ok(true);
        }
        let generation = tenant.places.generation();
        let exists = match place {
            Place::Channel(channel) => self.store.0.channel_exists(&tenant.id, channel).await?,
            Place::Space(space) => self.store.0.channels(&tenant.id, space, &Keyset { after: None, limit: 1 }).await?.is_some(),
        };
        if exists {
            tenant.places.remember(generation, place, Freshness::of(session, now), self.settings.place_cache_max);
        }
        Ok(exists)
    }

    /// Delivery mode for `caller`. The tenant's tail must run for as long as the answer is used.
    ///
    /// # Errors
    /// When the rights had to be read and could not.
    pub async fn admission(&self, caller: &Caller) -> Result<Admission, StoreError> {
        self.view(caller, self.clock.now()).await?;
        Ok(Admission::new(caller.principal.clone(), Arc::clone(&caller.standing.rights)))
    }

    /// What a principal of `tenant` is, when it exists and is enabled: whether it can be a recipient.
    ///
    /// # Errors
    /// When it had to be read and could not.
    pub async fn enabled_kind(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Option<PrincipalKind>, StoreError> {
        let found = self.store.0.principal(tenant, principal).await?;
        Ok(found.filter(|principal| principal.enabled).map(|principal| principal.kind))
    }
}

/// Whether a credential is good.
fn verify(credential: &Credential, now: Timestamp) -> Result<(), AuthenticationError> {
    let token = &credential.token;
    let expired = token.expires_at.is_some_and(|end| end <= now);
    if expired || token.revoked_at.is_some() || !credential.principal.enabled {
        return Err(AuthenticationError::Unauthenticated);
    }
    match credential.tenant_state {
        TenantState::Active => Ok(()),
        TenantState::Suspended | TenantState::Deleting => Err(AuthenticationError::TenantSuspended),
    }
}

fn unreadable(error: StoreError) -> Denied {
    tracing::warn!(error = %error, "rights could not be read; the request is not decided");
    Denied::Unavailable
}
