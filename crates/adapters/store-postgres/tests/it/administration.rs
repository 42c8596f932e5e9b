//! Changes of identities that meet: from two nodes, each on connections of its own.

use std::sync::Arc;
use std::time::Duration;

use authz::{
    AuditDecision, AuditEntry, Channel, Grant, IdempotentAnswer, Keyset, Permission, PrincipalKind, Role, Scope, Scopes, Space, TokenHash,
    TokenRecord, TokenUse,
};
use domain::{ChannelId, GrantId, PrincipalId, SpaceId, StoreError, TokenId};
use testkit::ManualClock;
use testkit::conformance::inbox::agent;
use testkit::conformance::support::{Fixture, START, fresh, principal};

use crate::conformance::Opened;

const ALL: Keyset = Keyset { after: None, limit: 1000 };

/// Two nodes over one database.
struct Nodes([Fixture; 2]);

impl Nodes {
    async fn new() -> Arc<Self> {
        let clock = Arc::new(ManualClock::new(START));
        let first = Opened::in_new_database(clock.clone()).await;
        let second = Opened::over(Arc::clone(&first.database), clock.clone()).await;
        let nodes = Self([Fixture::over(Box::new(first), clock.clone()), Fixture::over(Box::new(second), clock)]);
        nodes.0[0].create_tenant("acme").await;
        Arc::new(nodes)
    }

    fn node(&self, number: usize) -> &Fixture {
        &self.0[number % 2]
    }
}

/// Runs `work` so many times at once, on the nodes in turn.
async fn at_once<T, F>(nodes: &Arc<Nodes>, count: usize, work: impl Fn(Arc<Nodes>, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut all = tokio::task::JoinSet::new();
    for number in 0..count {
        all.spawn(work(Arc::clone(nodes), number));
    }
    all.join_all().await
}

fn token(of: &str, number: usize) -> TokenRecord {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&(number as u64).to_be_bytes());
    TokenRecord {
        id: TokenId::new(fresh()),
        principal: agent(of),
        hash: TokenHash(hash),
        prefix: "dsp_agent_abcdef".to_owned(),
        scopes: Scopes::from_iter([Scope::Consume]),
        created_at: START,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

fn grant(of: &str, resource: &str) -> Grant {
    Grant {
        id: GrantId::new(fresh()),
        principal: agent(of),
        resource: resource.parse().unwrap(),
        permission: Permission::Read,
        created_at: START,
    }
}

async fn demote(fixture: &Fixture, name: &str) -> Result<(), StoreError> {
    let (tenant, mut changed) = (fixture.tenant.clone(), principal(name, PrincipalKind::Person, START));
    changed.role = Role::Member;
    let unit = fixture.admin(move |tx| {
        let (tenant, changed) = (tenant.clone(), changed.clone());
        Box::pin(async move {
            if tx.owners(&tenant).await? <= 1 {
                return Err(StoreError::Conflict("the last owner"));
            }
            tx.update_principal(&tenant, &changed).await.map(|_| ())
        })
    });
    unit.await
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_who_are_demoted_on_two_nodes_at_once_leave_one() {
    let nodes = Nodes::new().await;
    for round in 0..10 {
        for name in ["ann", "bob"] {
            let name = format!("{name}{round}");
            nodes.node(0).create_principal(&name, PrincipalKind::Person).await;
            let (tenant, mut owner) = (nodes.node(0).tenant.clone(), principal(&name, PrincipalKind::Person, START));
            owner.role = Role::Owner;
            let made = nodes.node(0).admin(move |tx| {
                let (tenant, owner) = (tenant.clone(), owner.clone());
                Box::pin(async move { tx.update_principal(&tenant, &owner).await })
            });
            made.await.unwrap();
        }
        // The survivor of the round before goes first, so that there are two.
        if round > 0 {
            let before = round - 1;
            for name in ["ann", "bob"] {
                let _maybe_demoted_already = demote(nodes.node(0), &format!("{name}{before}")).await;
            }
        }
        let outcomes = at_once(&nodes, 2, move |nodes, number| async move {
            demote(nodes.node(number), &format!("{}{round}", ["ann", "bob"][number])).await
        });
        let outcomes = outcomes.await;
        let refused = outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Conflict("the last owner"))).count();
        assert_eq!((outcomes.iter().filter(|outcome| outcome.is_ok()).count(), refused), (1, 1), "{outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_created_once_and_the_other_is_told() {
    let nodes = Nodes::new().await;
    for round in 0..10 {
        let outcomes = at_once(&nodes, 8, move |nodes, number| async move {
            let fixture = nodes.node(number);
            let (tenant, made) = (fixture.tenant.clone(), principal(&format!("p{round}"), PrincipalKind::Agent, START));
            let space = Space { id: SpaceId::parse(&format!("s{round}")).unwrap(), created_at: START };
            let unit = fixture.admin(move |tx| {
                let (tenant, made, space) = (tenant.clone(), made.clone(), space.clone());
                Box::pin(async move {
                    if number % 4 < 2 { tx.create_principal(&tenant, &made).await } else { tx.create_space(&tenant, &space).await }
                })
            });
            unit.await
        });
        let outcomes = outcomes.await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 2, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Conflict(_)))).count(), 6, "{outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_tokens_are_made_than_a_principal_may_have() {
    let nodes = Nodes::new().await;
    nodes.node(0).create_principal("bot", PrincipalKind::Agent).await;
    let outcomes = at_once(&nodes, 50, |nodes, number| async move {
        let fixture = nodes.node(number);
        let (tenant, made, now) = (fixture.tenant.clone(), token("bot", number), fixture.now());
        let unit = fixture.admin(move |tx| {
            let (tenant, made) = (tenant.clone(), made.clone());
            Box::pin(async move {
                if tx.live_tokens(&tenant, &made.principal, now).await? >= 20 {
                    return Err(StoreError::Conflict("enough"));
                }
                tx.create_token(&tenant, &made).await
            })
        });
        unit.await
    });
    let outcomes = outcomes.await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 20, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(StoreError::Conflict("enough"))).count(), 30, "{outcomes:?}");
    assert_eq!(nodes.node(0).store.tokens(&nodes.node(0).tenant, &agent("bot"), &ALL).await.unwrap().len(), 20);
}

/// Makes a space with a channel and grants on it.
async fn place(fixture: &Fixture, name: &str, grants: Vec<Grant>) {
    let (tenant, space) = (fixture.tenant.clone(), SpaceId::parse(name).unwrap());
    let unit = fixture.admin(move |tx| {
        let (tenant, space, grants) = (tenant.clone(), space.clone(), grants.clone());
        Box::pin(async move {
            tx.create_space(&tenant, &Space { id: space.clone(), created_at: START }).await?;
            tx.create_channel(&tenant, &Channel { space, id: ChannelId::parse("c").unwrap(), created_at: START }).await?;
            for grant in &grants {
                tx.create_grant(&tenant, grant).await?;
            }
            Ok(())
        })
    });
    unit.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_deleted_once_when_its_channel_goes_at_the_same_time() {
    let nodes = Nodes::new().await;
    nodes.node(0).create_principal("bot", PrincipalKind::Agent).await;
    for round in 0..20 {
        let name = format!("s{round}");
        let one = grant("bot", &format!("{name}/c"));
        place(nodes.node(0), &name, vec![one.clone()]).await;
        let told = at_once(&nodes, 2, move |nodes, number| {
            let (name, id) = (name.clone(), one.id);
            async move {
                let fixture = nodes.node(number);
                let (tenant, space) = (fixture.tenant.clone(), SpaceId::parse(&name).unwrap());
                let unit = fixture.admin(move |tx| {
                    let (tenant, space) = (tenant.clone(), space.clone());
                    Box::pin(async move {
                        if number == 0 {
                            Ok(tx.delete_grant(&tenant, id).await?.map_or(0, |_| 1))
                        } else {
                            let gone = tx.delete_channel(&tenant, &space, &ChannelId::parse("c").unwrap()).await?;
                            Ok(gone.unwrap().len())
                        }
                    })
                });
                unit.await.unwrap()
            }
        });
        assert_eq!(told.await.iter().sum::<usize>(), 1, "the grant was answered by one of them");
    }
    let left = nodes.node(1).store.grants(&nodes.node(1).tenant, None, &ALL).await.unwrap();
    assert_eq!(left, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_grant_stays_on_a_space_that_goes_while_it_is_made() {
    let nodes = Nodes::new().await;
    nodes.node(0).create_principal("bot", PrincipalKind::Agent).await;
    for round in 0..20 {
        let name = format!("s{round}");
        place(nodes.node(0), &name, Vec::new()).await;
        let outcomes = at_once(&nodes, 2, move |nodes, number| {
            let name = name.clone();
            async move {
                let fixture = nodes.node(number);
                let (tenant, space, made) = (fixture.tenant.clone(), SpaceId::parse(&name).unwrap(), grant("bot", &format!("{name}/c")));
                let unit = fixture.admin(move |tx| {
                    let (tenant, space, made) = (tenant.clone(), space.clone(), made.clone());
                    Box::pin(async move {
                        if number == 0 {
                            return tx.delete_space(&tenant, &space).await.map(|_| ());
                        }
                        if !tx.resource_exists(&tenant, &made.resource).await? {
                            return Err(StoreError::Conflict("it is gone"));
                        }
                        tx.create_grant(&tenant, &made).await.map(|_| ())
                    })
                });
                unit.await
            }
        });
        let outcomes = outcomes.await;
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(StoreError::Conflict("it is gone")))), "{outcomes:?}");
    }
    assert_eq!(nodes.node(0).store.grants(&nodes.node(0).tenant, None, &ALL).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_that_goes_while_others_write_about_it_leaves_nothing_behind() {
    let nodes = Nodes::new().await;
    for round in 0..10 {
        let name = format!("bot{round}");
        nodes.node(0).create_principal(&name, PrincipalKind::Agent).await;
        let of = name.clone();
        let outcomes = at_once(&nodes, 12, move |nodes, number| {
            let name = of.clone();
            async move {
                let fixture = nodes.node(number);
                let (tenant, id) = (fixture.tenant.clone(), agent(&name));
                let made = token(&name, round * 100 + number);
                let taken = agents::Take {
                    key: agents::ConsumerKey {
                        tenant: tenant.clone(),
                        agent: id.clone(),
                        name: domain::ConsumerName::parse(&format!("c{number}")).unwrap(),
                    },
                    holder: agents::Holder::Rest,
                };
                match number % 3 {
                    0 => agents::CursorStore::take(&*fixture.store, &taken, 99).await.map(|_| ()),
                    1 if number == 7 => delete(fixture, &id).await,
                    _ => {
                        let unit = fixture.admin(move |tx| {
                            let (tenant, made) = (tenant.clone(), made.clone());
                            Box::pin(async move {
                                tx.create_token(&tenant, &made).await?;
                                tx.create_grant(&tenant, &grant(made.principal.as_str(), "*")).await?;
                                let answer = IdempotentAnswer { request_hash: [1; 32], status: 201, body: String::new() };
                                tx.store_answer(&tenant, &made.principal, &made.id.to_string(), &answer, START, START).await
                            })
                        });
                        unit.await
                    }
                }
            }
        });
        let allowed =
            |outcome: &Result<(), StoreError>| matches!(outcome, Ok(()) | Err(StoreError::Conflict(_) | StoreError::TenantInactive));
        let outcomes = outcomes.await;
        assert!(outcomes.iter().all(allowed), "{outcomes:?}");
        for table in ["tokens", "grants", "idempotency_keys"] {
            assert_eq!(nodes.node(1).count(&format!("{table} WHERE principal_id = '{name}'")).await, 0, "{table}");
        }
        assert_eq!(nodes.node(1).count(&format!("agent_consumer_cursors WHERE agent_id = '{name}'")).await, 0);
    }
}

async fn delete(fixture: &Fixture, id: &PrincipalId) -> Result<(), StoreError> {
    let (tenant, id) = (fixture.tenant.clone(), id.clone());
    let unit = fixture.admin(move |tx| {
        let (tenant, id) = (tenant.clone(), id.clone());
        Box::pin(async move { tx.delete_principal(&tenant, &id).await.map(|_| ()) })
    });
    unit.await
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_beside_writing_removes_what_is_old_once_and_nothing_else() {
    let nodes = Nodes::new().await;
    nodes.node(0).create_principal("sam", PrincipalKind::Person).await;
    let (old, new) = (START, START.plus(Duration::from_hours(2)));
    let line = |at, target: String| AuditEntry {
        id: 0,
        at,
        actor: None,
        action: "me.read".to_owned(),
        target,
        decision: AuditDecision::Deny,
        count: 1,
        before: None,
        after: None,
    };
    let tenant = nodes.node(0).tenant.clone();
    let lines: Vec<_> = (0..300).map(|number| (tenant.clone(), line(old, format!("t{number}")))).collect();
    nodes.node(0).store.record_denials(&lines).await.unwrap();
    let work = at_once(&nodes, 24, move |nodes, number| {
        let lines: Vec<_> = (0..20).map(|target| (nodes.node(0).tenant.clone(), line(new, format!("t{target}")))).collect();
        async move {
            let fixture = nodes.node(number);
            if number % 2 == 0 { fixture.store.prune(new, new, 40).await } else { fixture.store.record_denials(&lines).await.map(|()| 0) }
        }
    });
    let outcomes = work.await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let mut pruned: u64 = outcomes.into_iter().flatten().sum();
    while let Ok(more @ 1..) = nodes.node(0).store.prune(new, new, 100).await {
        pruned += more;
    }
    assert_eq!(pruned, 300, "each old line is counted once");
    let left = nodes.node(1).store.audit(&nodes.node(1).tenant, &authz::AuditFilter::default(), &ALL).await.unwrap();
    assert_eq!((left.len(), left.iter().map(|entry| entry.count).sum::<u64>()), (20, 240));
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_of_the_same_tokens_are_noted_from_two_nodes_in_any_order() {
    let nodes = Nodes::new().await;
    nodes.node(0).create_principal("bot", PrincipalKind::Agent).await;
    let (tenant, tokens): (_, Vec<_>) = (nodes.node(0).tenant.clone(), (0..30).map(|number| token("bot", number)).collect());
    for token in &tokens {
        let (tenant, token) = (tenant.clone(), token.clone());
        let unit = nodes.node(0).admin(move |tx| {
            let (tenant, token) = (tenant.clone(), token.clone());
            Box::pin(async move { tx.create_token(&tenant, &token).await })
        });
        unit.await.unwrap();
    }
    let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
    let noted = at_once(&nodes, 40, move |nodes, number| {
        let mut uses: Vec<_> = ids
            .iter()
            .map(|id| TokenUse { tenant: nodes.node(0).tenant.clone(), token: *id, at: START.plus(Duration::from_secs(number as u64)) })
            .collect();
        if number % 2 == 0 {
            uses.reverse();
        }
        async move { nodes.node(number).store.touch_tokens(&uses).await }
    });
    assert!(noted.await.iter().all(Result::is_ok));
    let stored = nodes.node(0).store.tokens(&tenant, &agent("bot"), &ALL).await.unwrap();
    assert!(stored.iter().all(|token| token.last_used_at == Some(START.plus(Duration::from_secs(39)))), "the latest wins");
}
