//! Access tokens.

use std::time::Duration;

use domain::{PrincipalId, Timestamp, TokenId};
use serde::Serialize;

use super::idempotency::{Idempotent, Made, Outcome};
use super::listing::{Listing, probe};
use super::principals::{target, touchable};
use super::scene::{NOTHING, Scene};
use super::{Admin, AdminError, Tx, unit};
use crate::{
    AccessChange, Action, Caller, Change, Denied, DeniedReason, Keyset, Principal, PrincipalKind, Scope, Scopes, Target, TokenRecord,
    TokenSecret,
};

/// The longest life that can be asked for; without an expiry a token lives until it is revoked.
const LONGEST_LIFE: Duration = Duration::from_hours(24 * 365 * 100);

/// A token to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewToken {
    /// What it is narrowed to; every scope of its principal's kind when absent.
    pub scopes: Option<Scopes>,
    /// After how long it is refused.
    pub expires_in: Option<Duration>,
}

/// A token that was created, with its secret, which is not known any more afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedToken {
    /// The token.
    pub record: TokenRecord,
    /// The secret, to show once.
    pub secret: TokenSecret,
}

impl Scopes {
    /// Every scope that tokens of this kind of principal can have.
    pub fn of_kind(kind: PrincipalKind) -> Self {
        let reading = if kind == PrincipalKind::Agent { [Scope::Consume, Scope::Admin] } else { [Scope::Read, Scope::Admin] };
        let own: &[Scope] = if kind == PrincipalKind::Agent { &Scope::AGENT } else { &[Scope::Instance] };
        std::iter::once(Scope::Publish).chain(reading).chain(own.iter().copied()).collect()
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        self.iter().filter(|scope| other.contains(*scope)).collect()
    }
}

impl Admin {
    /// Creates a token. Operators create them for members; everybody creates narrower ones for itself: no scope and no later expiry than
    /// the caller's own token has.
    ///
    /// # Errors
    /// [`AdminError`]; `LimitReached` over `authz.max_tokens_per_principal`.
    pub async fn create_token(
        &self,
        caller: &Caller,
        principal: &PrincipalId,
        new: NewToken,
        idempotent: Option<Idempotent<IssuedToken>>,
    ) -> Result<Outcome<IssuedToken>, AdminError> {
        let tried = (Action::TokensManage, Target::Principal(principal));
        self.authorize(caller, tried.0, tried.1).await?;
        let subject = self.store.principal(&caller.tenant, principal).await?.ok_or(AdminError::NotFound)?;
        let scene = self.scene(caller);
        let issued = issue(&scene, caller, &subject, &new).inspect_err(|error| self.note(caller, tried, error))?;
        let (unit_scene, actor, ceiling) = (scene.clone(), caller.principal.clone(), self.settings().max_tokens_per_principal);
        let work = unit(move |tx| {
            let (scene, actor, issued) = (unit_scene.clone(), actor.clone(), issued.clone());
            Box::pin(async move {
                let subject = touchable(tx, &scene, &actor, &issued.record.principal).await?;
                if tx.live_tokens(&scene.tenant, &subject.id, scene.now).await? >= ceiling {
                    return Err(AdminError::LimitReached("authz.max_tokens_per_principal"));
                }
                let changes = add_token(tx, &scene, &issued.record).await?;
                scene.announce(tx, &changes).await?;
                Ok((Made::New(issued), changes))
            })
        });
        self.create(caller, tried, scene, idempotent, work).await
    }

    /// Tokens of a principal in the order of their creation.
    ///
    /// # Errors
    /// [`AdminError`].
    pub async fn tokens(&self, caller: &Caller, principal: &PrincipalId, keyset: &Keyset) -> Result<Listing<TokenRecord>, AdminError> {
        self.authorize(caller, Action::TokensManage, Target::Principal(principal)).await?;
        if self.store.principal(&caller.tenant, principal).await?.is_none() {
            return Err(AdminError::NotFound);
        }
        let probe = probe(keyset, self.settings().list_max);
        let items = self.store.tokens(&caller.tenant, principal, &probe).await?;
        Ok(Listing::of(&probe, items, |token| token.id.to_string()))
    }

    /// Revokes a token; its connections close.
    ///
    /// # Errors
    /// [`AdminError`]; `NotFound` when there is none or it was revoked before.
    pub async fn revoke_token(&self, caller: &Caller, principal: &PrincipalId, id: TokenId) -> Result<(), AdminError> {
        self.authorize(caller, Action::TokensManage, Target::Principal(principal)).await?;
        let (scene, actor, subject) = (self.scene(caller), caller.principal.clone(), principal.clone());
        let work = unit(move |tx| {
            let (scene, actor, subject) = (scene.clone(), actor.clone(), subject.clone());
            Box::pin(async move {
                touchable(tx, &scene, &actor, &subject).await?;
                if !tx.revoke_token(&scene.tenant, &subject, id, scene.now).await? {
                    return Err(AdminError::NotFound);
                }
                let record = Revoked { token_id: id };
                scene.audit(tx, Action::TokensManage, target(&subject), Some(&record), NOTHING).await?;
                let changes = vec![AccessChange { token_id: Some(id), ..AccessChange::concerning(Change::TokenRevoked, &subject) }];
                scene.announce(tx, &changes).await?;
                Ok(((), changes))
            })
        });
        self.change(caller, (Action::TokensManage, Target::Principal(principal)), work).await
    }
}

/// Stores a token and notes that; answers the change to announce.
pub(super) async fn add_token(tx: &mut Tx, scene: &Scene, record: &TokenRecord) -> Result<Vec<AccessChange>, AdminError> {
    tx.create_token(&scene.tenant, record).await?;
    let after = Issued { token_id: record.id, prefix: &record.prefix, scopes: record.scopes.to_words(), expires_at: record.expires_at };
    scene.audit(tx, Action::TokensManage, target(&record.principal), NOTHING, Some(&after)).await?;
    Ok(vec![AccessChange { token_id: Some(record.id), ..AccessChange::concerning(Change::TokenCreated, &record.principal) }])
}

fn issue(scene: &Scene, caller: &Caller, subject: &Principal, new: &NewToken) -> Result<IssuedToken, AdminError> {
    let own = subject.id == caller.principal;
    let all = Scopes::of_kind(subject.kind);
    // For itself nobody gets more than it came with; and only who operates the instance hands that on.
    let most = if own { all.intersection(caller.scopes) } else { all.iter().filter(|scope| may_hand_on(caller, *scope)).collect() };
    let scopes = new.scopes.unwrap_or(most);
    if !all.includes(scopes) || scopes == Scopes::default() {
        return Err(AdminError::invalid("/scopes", format!("one or more of the scopes of this kind: {}", all.to_words())));
    }
    if !most.includes(scopes) {
        return Err(AdminError::Denied(Denied::Forbidden(DeniedReason::ScopeMissing)));
    }
    if new.expires_in.is_some_and(|life| life.is_zero() || life > LONGEST_LIFE) {
        return Err(AdminError::invalid("/expires_in_seconds", "at least 1 and at most 100 years"));
    }
    let asked = new.expires_in.map(|life| scene.now.plus(life));
    let expires_at = match (own, caller.expires_at) {
        (true, Some(end)) => Some(asked.unwrap_or(end).min(end)),
        _ => asked,
    };
    token(scene, subject, scopes, expires_at)
}

fn may_hand_on(caller: &Caller, scope: Scope) -> bool {
    scope != Scope::Instance || caller.scopes.contains(Scope::Instance)
}

/// Makes a token of `principal`.
pub(super) fn token(
    scene: &Scene,
    principal: &Principal,
    scopes: Scopes,
    expires_at: Option<Timestamp>,
) -> Result<IssuedToken, AdminError> {
    let secret = TokenSecret::generate(principal.kind).map_err(|_| AdminError::Random)?;
    let record = TokenRecord {
        id: TokenId::new(scene.ids.uuid()),
        principal: principal.id.clone(),
        hash: secret.hash(),
        prefix: secret.prefix().to_owned(),
        scopes,
        created_at: scene.now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    Ok(IssuedToken { record, secret })
}

/// A new token as the audit log shows it.
#[derive(Serialize)]
struct Issued<'a> {
    token_id: TokenId,
    prefix: &'a str,
    scopes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// A revoked token as the audit log shows it.
#[derive(Serialize)]
struct Revoked {
    token_id: TokenId,
}
