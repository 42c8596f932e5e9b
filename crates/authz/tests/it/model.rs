//! `authorize` and delivery admission against a naive model that works on grants as they are written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use authz::{
    Action, Authorizer, Caller, Channel, Denied, DeniedReason, Grant, IdentityStore, Permission, Principal, PrincipalKind, Role, Scope,
    Scopes, Space, Target, Tenant, TenantState, TokenRecord, TokenSecret,
};
use domain::{ChannelRef, EventOrigin, GrantId, PrincipalId, Seq, SpaceId, SyncEpoch, SystemClock, TenantId, Timestamp, TokenId};
use futures_util::FutureExt;
use proptest::prelude::*;
use uuid::Uuid;

use crate::fake::{Fake, State};
use crate::world::{channel, id, published};

const SPACES: [&str; 2] = ["a", "b"];
const CHANNELS: [&str; 4] = ["a/x", "a/y", "b/x", "b/y"];
const RESOURCES: [&str; 7] = ["*", "a", "b", "a/x", "a/y", "b/x", "b/y"];
const PERMISSIONS: [Permission; 3] = [Permission::Read, Permission::Post, Permission::Manage];
const KINDS: [PrincipalKind; 3] = [PrincipalKind::Person, PrincipalKind::App, PrincipalKind::Agent];
const ROLES: [Role; 3] = [Role::Member, Role::Operator, Role::Owner];
const MISSING: Denied = Denied::Forbidden(DeniedReason::PermissionMissing);

/// One principal and what it holds.
#[derive(Clone, Debug)]
struct Case {
    kind: PrincipalKind,
    role: Role,
    scopes: BTreeSet<usize>,
    grants: Vec<(&'static str, Permission)>,
    in_default: bool,
}

/// What is asked for, by name: channels and spaces beyond those that exist as well.
#[derive(Clone, Debug)]
enum Aim {
    Tenant,
    Instance,
    Space(&'static str),
    Channel(&'static str),
    Principal(&'static str),
}

fn case() -> impl Strategy<Value = Case> {
    let all = Scope::ALL.len();
    let scopes = prop_oneof![3 => Just((0..all).collect::<BTreeSet<_>>()), 1 => prop::collection::btree_set(0..all, 0..all)];
    let grants = prop::collection::vec((prop::sample::select(&RESOURCES[..]), prop::sample::select(&PERMISSIONS[..])), 0..5);
    let role = prop_oneof![4 => Just(Role::Member), 1 => prop::sample::select(&ROLES[..])];
    (prop::sample::select(&KINDS[..]), role, scopes, grants, any::<bool>()).prop_map(|(kind, role, scopes, grants, in_default)| Case {
        kind,
        role,
        scopes,
        grants,
        in_default,
    })
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        Just(Aim::Tenant),
        Just(Aim::Instance),
        prop::sample::select(vec!["a", "b", "gone"]).prop_map(Aim::Space),
        prop::sample::select(vec!["a/x", "a/y", "b/x", "b/y", "a/gone", "gone/x"]).prop_map(Aim::Channel),
        prop::sample::select(vec!["self", "other"]).prop_map(Aim::Principal),
    ]
}

/// What only agents do, and only for themselves.
const AGENT_SELF: [&str; 9] = [
    "agent.events.consume",
    "inbox.poll",
    "inbox.claim",
    "inbox.ack",
    "inbox.release",
    "inbox.heartbeat",
    "stream.subscribe",
    "callback.register",
    "callback.rotate",
];

impl Case {
    /// What the principal holds on a path: 0 nothing, 1 read, 2 post, 3 manage.
    fn level(&self, path: &str) -> usize {
        let implicit = if self.role == Role::Member { 0 } else { 3 };
        let covers = |resource: &str| resource == "*" || resource == path || path.starts_with(&format!("{resource}/"));
        let granted = self.grants.iter().filter(|(resource, _)| covers(resource));
        granted.map(|(_, permission)| 1 + *permission as usize).max().unwrap_or(0).max(implicit)
    }

    fn knows(&self, action: Action, aim: &Aim) -> bool {
        match aim {
            Aim::Tenant | Aim::Instance | Aim::Principal("self") => true,
            Aim::Space(space) => {
                let inside = self.grants.iter().any(|(resource, _)| resource.starts_with(&format!("{space}/")));
                SPACES.contains(space) && (inside || self.level(space) > 0)
            }
            Aim::Channel(channel) => CHANNELS.contains(channel) && self.level(channel) > 0,
            Aim::Principal(_) => self.role != Role::Member && !AGENT_SELF.contains(&action.name()),
        }
    }

    fn may(&self, action: Action, aim: &Aim) -> bool {
        match (action.name(), aim) {
            (name, Aim::Principal(_)) if AGENT_SELF.contains(&name) || ["presence.set", "hooks.manage"].contains(&name) => true,
            ("me.read", _)
            | ("events.read" | "events.scheduled" | "spaces.read", Aim::Tenant)
            | ("spaces.read", Aim::Space(_) | Aim::Channel(_))
            | ("events.scheduled" | "consumers.list" | "principals.read" | "tokens.manage", Aim::Principal(_)) => true,
            ("grants.read", aim) => !matches!(aim, Aim::Instance),
            ("events.publish", Aim::Tenant) => self.level("") >= 2,
            ("events.publish", Aim::Channel(path)) => self.level(path) >= 2,
            ("consumers.list" | "principals.read" | "principals.manage" | "tokens.manage" | "audit.read", Aim::Tenant)
            | ("principals.manage" | "inbox.read" | "inbox.manage", Aim::Principal(_)) => self.role != Role::Member,
            ("spaces.manage" | "grants.manage", Aim::Tenant) => self.level("") == 3,
            ("spaces.manage" | "grants.manage", Aim::Space(path)) | ("grants.manage", Aim::Channel(path)) => self.level(path) == 3,
            ("spaces.manage", Aim::Channel(path)) => self.level(path.split('/').next().unwrap()) == 3,
            ("tenants.manage" | "admin.backup" | "nodes.read", Aim::Instance) => self.in_default && self.role == Role::Owner,
            _ => false,
        }
    }

    fn expected(&self, action: Action, aim: &Aim) -> Result<(), Denied> {
        if !self.knows(action, aim) {
            return Err(Denied::NotFound);
        }
        let agent = self.kind == PrincipalKind::Agent;
        if (AGENT_SELF.contains(&action.name()) && !agent) || (action == Action::EventsRead && agent) {
            return Err(Denied::Forbidden(DeniedReason::SubjectKindNotAllowed));
        }
        let needed = match (action.name(), aim) {
            ("hooks.manage", Aim::Principal("other")) => Some(Scope::Admin),
            _ => action.scope(),
        };
        if needed.is_some_and(|scope| !self.scopes.iter().any(|at| Scope::ALL[*at] == scope)) {
            return Err(Denied::Forbidden(DeniedReason::ScopeMissing));
        }
        if self.may(action, aim) { Ok(()) } else { Err(MISSING) }
    }

    fn tenant(&self) -> TenantId {
        TenantId::parse(if self.in_default { "default" } else { "acme" }).unwrap()
    }

    fn state(&self, secret: &TokenSecret) -> State {
        let (tenant, created_at) = (self.tenant(), Timestamp::from_micros(0));
        let mut state = State::default();
        let epoch = SyncEpoch::new(Uuid::nil());
        let row = Tenant { id: tenant.clone(), state: TenantState::Active, head: Seq::ZERO, epoch, created_at };
        state.tenants.insert(tenant.clone(), row);
        let principal = Principal { id: id("self"), kind: self.kind, role: self.role, display_name: None, enabled: true, created_at };
        state.principals.insert((tenant.clone(), id("self")), principal);
        for name in SPACES {
            let space = SpaceId::parse(name).unwrap();
            state.spaces.insert((tenant.clone(), space.clone()), Space { id: space, created_at });
        }
        for name in CHANNELS {
            let name: ChannelRef = channel(name);
            let row = Channel { space: name.space().parse().unwrap(), id: name.channel().parse().unwrap(), created_at };
            state.channels.insert((tenant.clone(), name), row);
        }
        for (number, (resource, permission)) in self.grants.iter().enumerate() {
            let grant_id = GrantId::new(Uuid::from_u128(number as u128));
            let resource = resource.parse().unwrap();
            state
                .grants
                .push((tenant.clone(), Grant { id: grant_id, principal: id("self"), resource, permission: *permission, created_at }));
        }
        let scopes: Scopes = self.scopes.iter().map(|at| Scope::ALL[*at]).collect();
        let token = TokenRecord {
            id: TokenId::new(Uuid::nil()),
            principal: id("self"),
            hash: secret.hash(),
            prefix: secret.prefix().to_owned(),
            scopes,
            created_at,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        state.tokens.push((tenant, token));
        state
    }

    fn enter(&self) -> (Arc<Fake>, Arc<Authorizer>, Caller) {
        let secret = TokenSecret::generate(self.kind).unwrap();
        let store = Arc::new(Fake::default());
        *store.state.lock().unwrap() = self.state(&secret);
        let identities: Arc<dyn IdentityStore> = store.clone();
        let authorizer = Authorizer::new(identities, Arc::new(SystemClock::new()));
        authorizer.tail_started(&self.tenant()).now_or_never().unwrap().unwrap();
        let caller = authorizer.authenticate(secret.reveal()).now_or_never().unwrap().unwrap();
        (store, authorizer, caller)
    }
}

fn decide(authorizer: &Authorizer, caller: &Caller, action: Action, aim: &Aim) -> Result<(), Denied> {
    let (space, name): (SpaceId, PrincipalId);
    let path: ChannelRef;
    let target = match aim {
        Aim::Tenant => Target::Tenant,
        Aim::Instance => Target::Instance,
        Aim::Space(text) => {
            space = text.parse().unwrap();
            Target::Space(&space)
        }
        Aim::Channel(text) => {
            path = channel(text);
            Target::Channel(&path)
        }
        Aim::Principal(text) => {
            name = id(text);
            Target::Principal(&name)
        }
    };
    authorizer.authorize(caller, action, target).now_or_never().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn authorize_decides_as_the_naive_model_does(case in case(), aims in prop::collection::vec(aim(), 1..12)) {
        let (_, authorizer, caller) = case.enter();
        for aim in &aims {
            for action in Action::ALL {
                prop_assert_eq!(decide(&authorizer, &caller, action, aim), case.expected(action, aim), "{:?} {:?}", action, aim);
            }
        }
    }

    #[test]
    fn admission_shows_what_the_naive_model_shows(
        case in case(),
        events in prop::collection::vec((prop::option::of(prop::sample::select(&CHANNELS[..])), any::<bool>(), any::<bool>()), 1..30),
    ) {
        let (store, authorizer, caller) = case.enter();
        let mut admission = authorizer.admission(&caller).now_or_never().unwrap().unwrap();
        let reads = store.reads.load(Ordering::SeqCst);
        for (channel, addressed, by_server) in events {
            let channel = channel.filter(|_| !by_server);
            let origin = if by_server { EventOrigin::Server } else { EventOrigin::Published };
            let audience: &[&str] = if addressed { &["other", "self"] } else { &["other"] };
            let expected = addressed || channel.is_some_and(|path| case.level(path) > 0) || (by_server && case.role != Role::Member);
            prop_assert_eq!(admission.admits(&published(channel, audience, origin)), expected);
        }
        prop_assert_eq!(store.reads.load(Ordering::SeqCst), reads, "admission reads nothing");
    }
}
