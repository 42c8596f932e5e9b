//! What configuration says about identities and rights.

use std::time::Duration;

/// Settings of this module (configuration section `authz`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most authenticated tokens kept in memory (`authz.token_cache_max`).
    pub token_cache_max: usize,
    /// For how long what was read is trusted while no tail observes the tenant (`authz.cache_ttl`).
    pub cache_ttl: Duration,
    /// Most principals of a tenant whose rights are kept although nothing uses them at the moment (`authz.rights_cache_max`).
    pub rights_cache_max: usize,
    /// Most spaces and channels of a tenant that are remembered to exist (`authz.place_cache_max`).
    pub place_cache_max: usize,
    /// How often denials and token uses are written (`authz.flush_interval`).
    pub flush_interval: Duration,
    /// Most pairs of actor and action whose denials are counted apart in memory (`authz.denials_max`); further ones are counted together.
    pub denials_max: usize,
    /// At most how often a token's last use is noted (`authz.token_use_interval`).
    pub token_use_interval: Duration,
    /// Most token uses waiting to be written (`authz.token_uses_max`).
    pub token_uses_max: usize,
    /// For how long audit entries are kept (`authz.audit_retention`).
    pub audit_retention: Duration,
    /// For how long the answer under an `Idempotency-Key` is kept (`authz.idempotency_window`).
    pub idempotency_window: Duration,
    /// How often what is older than that is removed (`authz.prune_interval`).
    pub prune_interval: Duration,
    /// Most tokens of a principal that are neither revoked nor expired (`authz.max_tokens_per_principal`).
    pub max_tokens_per_principal: u64,
    /// Most entries of one page of a listing (`authz.list_max`).
    pub list_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            token_cache_max: 20_000,
            cache_ttl: Duration::from_secs(1),
            rights_cache_max: 20_000,
            place_cache_max: 20_000,
            flush_interval: Duration::from_secs(1),
            denials_max: 10_000,
            token_use_interval: Duration::from_mins(1),
            token_uses_max: 20_000,
            audit_retention: DAY * 90,
            idempotency_window: DAY,
            prune_interval: Duration::from_mins(10),
            max_tokens_per_principal: 100,
            list_max: 200,
        }
    }
}
