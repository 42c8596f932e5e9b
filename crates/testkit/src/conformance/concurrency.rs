//! Many at once: what a store promises when its callers do not wait for one another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agents::{ConsumerKey, Holder, RestWindow, Save, SaveOutcome, Take, WindowWrite};
use authz::{AuditDecision, AuditEntry, AuditFilter, IdempotentAnswer, Keyset, Principal, PrincipalKind, Role};
use domain::{Appended, ConsumerName, EventId, SessionId, StoreError};
use hooks::{GroupNumber, LogPosition};
use inbox::{AckState, LeaseHash, LeaseKey, QueueFilter, Rules};
use intake::Schedule;

use super::hooks::ring_at;
use super::inbox::{MINUTE, agent};
use crate::conformance::harness::Harness;
use crate::conformance::support::{Fixture, fresh, new_seq, principal, seq, tenant};

/// Runs `work` for each of `count` at once and answers what came of them.
async fn at_once<T, F>(fixture: &Arc<Fixture>, count: usize, work: impl Fn(Arc<Fixture>, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut all = tokio::task::JoinSet::new();
    for number in 0..count {
        all.spawn(work(Arc::clone(fixture), number));
    }
    all.join_all().await
}

fn key(name: &str) -> ConsumerKey {
    ConsumerKey { tenant: tenant("acme"), agent: agent("bot"), name: ConsumerName::parse(name).unwrap() }
}

async fn with_bot(harness: &dyn Harness) -> Arc<Fixture> {
    let fixture = Fixture::new(harness).await;
    fixture.create_principal("bot", PrincipalKind::Agent).await;
    fixture.fill(5).await;
    Arc::new(fixture)
}

pub(crate) async fn a_reader_sees_the_log_grow_without_gaps_and_never_finds_a_row_behind_it(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let fixture = Arc::clone(&fixture);
        writers.spawn(async move {
            let mut ids = Vec::new();
            for turn in 0..20 {
                let events: Vec<_> = (0..=turn % 3).map(|_| fixture.event("x")).collect();
                let mine: Vec<EventId> = events.iter().map(|event| event.id).collect();
                let outcome = if writer % 2 == 0 {
                    fixture.append(events).await
                } else {
                    let (tenant, undo) = (fixture.tenant.clone(), turn % 4 == 3);
                    let unit = fixture.publish_tx(move |tx| {
                        let (tenant, events) = (tenant.clone(), events.clone());
                        Box::pin(async move {
                            let appended = tx.append(&tenant, &events).await?;
                            if undo { Err(StoreError::Conflict("on purpose")) } else { Ok(appended) }
                        })
                    });
                    unit.await
                };
                match outcome {
                    Ok(_) => ids.extend(mine),
                    Err(error) => assert_eq!(error, StoreError::Conflict("on purpose")),
                }
            }
            ids
        });
    }
    let reading = {
        let fixture = Arc::clone(&fixture);
        async move {
            let (mut seen, mut last) = (Vec::new(), 0);
            while seen.len() < 4 * 39 + 4 * (39 - 9) {
                let page = fixture.page_after(last).await.unwrap();
                for event in &page.events {
                    assert_eq!(event.seq.get(), last + 1, "no row is missing, none comes late");
                    last = event.seq.get();
                    seen.push(event.id);
                }
                assert_eq!(page.head.seq.get(), last, "head and rows are of one snapshot");
            }
            seen
        }
    };
    let (written, seen) = tokio::join!(writers.join_all(), reading);
    let written: BTreeSet<EventId> = written.into_iter().flatten().collect();
    assert_eq!(seen.len(), written.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), written);
}

pub(crate) async fn one_key_makes_one_event_whichever_way_it_comes(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let answers = at_once(&fixture, 60, async |fixture, number| {
        let (tenant, event) = (fixture.tenant.clone(), fixture.keyed("k", "a"));
        match number % 3 {
            0 => fixture.append(vec![fixture.event("x"), event]).await.unwrap()[1],
            1 => {
                let unit = fixture.publish_tx(move |tx| {
                    let (tenant, event) = (tenant.clone(), event.clone());
                    Box::pin(async move { tx.append(&tenant, &[event]).await })
                });
                unit.await.unwrap()[0]
            }
            _ => {
                let id = event.id;
                let schedule = Schedule { publication: event, publisher: agent("sam"), available_at: fixture.now().plus(MINUTE) };
                let unit = fixture.publish_tx(move |tx| {
                    let (tenant, schedule) = (tenant.clone(), schedule.clone());
                    Box::pin(async move { tx.schedule(&tenant, &schedule).await })
                });
                unit.await.unwrap().unwrap_or(Appended::New { seq: seq(0), id })
            }
        }
    })
    .await;
    let first: Vec<EventId> =
        answers.iter().filter_map(|answer| if let Appended::New { id, .. } = answer { Some(*id) } else { None }).collect();
    assert_eq!(first.len(), 1, "{answers:?}");
    let repeats = answers.iter().filter(|answer| matches!(answer, Appended::Duplicate { id, .. } if *id == first[0])).count();
    assert_eq!(repeats, 59);
}

pub(crate) async fn a_due_event_is_promoted_by_one(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let (tenant, publication) = (fixture.tenant.clone(), fixture.keyed("k", "a"));
    let id = publication.id;
    let schedule = Schedule { publication, publisher: agent("sam"), available_at: fixture.now() };
    let scheduled = fixture.publish_tx(move |tx| {
        let (tenant, schedule) = (tenant.clone(), schedule.clone());
        Box::pin(async move { tx.schedule(&tenant, &schedule).await })
    });
    scheduled.await.unwrap();
    let promoted = at_once(&fixture, 20, move |fixture, _| {
        let tenant = fixture.tenant.clone();
        async move {
            let unit = fixture.publish_tx(move |tx| {
                let tenant = tenant.clone();
                Box::pin(async move {
                    let Some(schedule) = tx.promote(&tenant, id).await? else { return Ok(None) };
                    tx.append(&tenant, &[schedule.publication]).await.map(Some)
                })
            });
            unit.await.unwrap()
        }
    })
    .await;
    let promoted: Vec<_> = promoted.into_iter().flatten().flatten().collect();
    assert_eq!(promoted, [Appended::New { seq: seq(1), id }]);
    assert_eq!(fixture.head().await, 1);
}

pub(crate) async fn takes_of_one_consumer_form_a_line(harness: &dyn Harness) {
    let fixture = with_bot(harness).await;
    let holders: Vec<Holder> = (0..20).map(|_| Holder::Gateway(SessionId::new(fresh()))).collect();
    let takers = holders.clone();
    let taken = at_once(&fixture, holders.len(), move |fixture, number| {
        let take = Take { key: key("default"), holder: takers[number] };
        async move { (take.holder, fixture.store.take(&take, 9).await.unwrap()) }
    })
    .await;
    assert_eq!(taken.iter().filter(|(_, taken)| taken.created).count(), 1);
    assert!(taken.iter().all(|(holder, taken)| taken.row.holder == Some(*holder) && taken.created == taken.previous.is_none()));
    let status = fixture.store.status(&key("default")).await.unwrap().unwrap();
    let last = status.row.holder.unwrap();
    let mut followed: Vec<String> = taken.iter().filter_map(|(_, taken)| taken.previous).map(|holder| format!("{holder:?}")).collect();
    let mut others: Vec<String> = holders.iter().filter(|holder| **holder != last).map(|holder| format!("{holder:?}")).collect();
    followed.sort();
    others.sort();
    assert_eq!(followed, others, "everyone but the last was followed by one");
    let versions: BTreeSet<u64> = taken.iter().map(|(_, taken)| taken.row.window_version).collect();
    assert_eq!((versions.len(), versions.last().copied()), (20, Some(status.row.window_version)));
}

pub(crate) async fn takes_at_once_never_exceed_what_an_agent_may_have(harness: &dyn Harness) {
    let fixture = with_bot(harness).await;
    let outcomes = at_once(&fixture, 20, async |fixture, number| {
        fixture.store.take(&Take { key: key(&format!("c{number}")), holder: Holder::Rest }, 5).await.map(|taken| taken.created)
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(true)).count(), 5, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Conflict(_)))).count(), 15, "{outcomes:?}");
    assert_eq!(fixture.store.list(&fixture.tenant, &agent("bot"), None, 99).await.unwrap().len(), 5);
}

pub(crate) async fn whoever_lost_a_consumer_saves_nothing_any_more(harness: &dyn Harness) {
    let fixture = with_bot(harness).await;
    let old = Holder::Gateway(SessionId::new(fresh()));
    fixture.store.take(&Take { key: key("default"), holder: old }, 9).await.unwrap();
    let new = Holder::Gateway(SessionId::new(fresh()));
    fixture.fill(30).await;
    let saving = at_once(&fixture, 30, move |fixture, number| {
        let save = Save { key: key("default"), holder: old, acked: Some(seq(6 + number as u64)) };
        async move { fixture.store.save(&[save]).await.unwrap()[0] }
    });
    let take = Take { key: key("default"), holder: new };
    let (saved, taken) = tokio::join!(saving, fixture.store.take(&take, 9));
    let taken = taken.unwrap();
    let highest = saved.iter().filter_map(|outcome| if let SaveOutcome::Held(acked) = outcome { Some(*acked) } else { None }).max();
    assert_eq!(taken.row.acked, highest.unwrap_or(seq(5)), "what was answered as held is there, and nothing else");
    let row = fixture.store.status(&key("default")).await.unwrap().unwrap().row;
    assert_eq!((row.acked, row.holder), (taken.row.acked, Some(new)));
}

pub(crate) async fn of_writes_of_one_window_version_one_is_kept(harness: &dyn Harness) {
    let fixture = with_bot(harness).await;
    let version = fixture.store.take(&Take { key: key("default"), holder: Holder::Rest }, 9).await.unwrap().row.window_version;
    for round in 0..5_u64 {
        let written = at_once(&fixture, 16, move |fixture, number| {
            let window = RestWindow { read: seq(5 + number as u64), ..RestWindow::default() };
            let write = WindowWrite { key: key("default"), expected_version: version + round, window };
            async move { fixture.store.write_window(&write).await.unwrap().then_some(write.window) }
        })
        .await;
        let kept: Vec<RestWindow> = written.into_iter().flatten().collect();
        let row = fixture.store.status(&key("default")).await.unwrap().unwrap().row;
        assert_eq!((kept, row.window_version), (vec![row.window], version + round + 1));
    }
}

/// Claims the first available item of `alpha`, if it may claim another one.
async fn claim_one(fixture: &Fixture, most: u64) -> Option<EventId> {
    let recipient = fixture.recipient("alpha");
    let claimed = fixture.inbox(move |tx| {
        let recipient = recipient.clone();
        Box::pin(async move {
            let row = tx.open_recipient(&recipient).await?;
            if tx.claimed(row.number, most).await? >= most {
                return Ok(None);
            }
            let Some(mut item) = tx.available(row.number, &QueueFilter::default(), 1).await?.pop() else { return Ok(None) };
            item.claim(tx.now(), MINUTE, LeaseHash::of("t"), None, &Rules::default()).unwrap();
            tx.put(std::slice::from_ref(&item)).await?;
            Ok(Some(item.facts.event_id))
        })
    });
    claimed.await.unwrap()
}

pub(crate) async fn no_item_is_claimed_twice_however_many_claim(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let jobs: Vec<_> = (0..40).map(|_| fixture.job(&["alpha"])).collect();
    let ids: BTreeSet<EventId> = jobs.iter().map(|job| job.id).collect();
    fixture.append(jobs).await.unwrap();
    let claimed = at_once(&fixture, 8, async |fixture, _| {
        let mut mine = Vec::new();
        while let Some(id) = claim_one(&fixture, 1_000).await {
            mine.push(id);
        }
        mine
    })
    .await;
    let claimed: Vec<EventId> = claimed.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 40, "each once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), ids);
}

pub(crate) async fn no_more_is_claimed_than_an_inbox_may_have_in_flight(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    fixture.append((0..20).map(|_| fixture.job(&["alpha"])).collect()).await.unwrap();
    let recipient = fixture.recipient("alpha");
    let limited = fixture.inbox(move |tx| {
        let recipient = recipient.clone();
        Box::pin(async move {
            let mut row = tx.open_recipient(&recipient).await?;
            row.policy.max_in_flight = Some(3);
            tx.save_recipient(&row).await
        })
    });
    limited.await.unwrap();
    let claimed = at_once(&fixture, 20, async |fixture, _| claim_one(&fixture, 3).await).await;
    assert_eq!(claimed.into_iter().flatten().count(), 3);
}

pub(crate) async fn an_item_is_changed_by_one_after_the_other(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let (id, _) = fixture.publish_job(&["alpha"]).await;
    let ended = at_once(&fixture, 10, move |fixture, _| {
        let recipient = fixture.recipient("alpha");
        async move {
            let unit = fixture.inbox(move |tx| {
                let recipient = recipient.clone();
                Box::pin(async move {
                    let row = tx.recipient(&recipient).await?.unwrap();
                    let mut item = tx.find(row.number, &[id]).await?.remove(0).unwrap();
                    if item.state != AckState::Available {
                        return Ok(false);
                    }
                    item.discard(tx.now(), &Rules::default()).unwrap();
                    tx.put(&[item]).await?;
                    Ok(true)
                })
            });
            unit.await.unwrap()
        }
    })
    .await;
    assert_eq!(ended.into_iter().filter(|ended| *ended).count(), 1);
    assert_eq!((fixture.count("inbox_items").await, fixture.count("inbox_ended").await), (0, 1));
}

pub(crate) async fn an_inbox_is_opened_once(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let numbers = at_once(&fixture, 20, async |fixture, number| {
        if number % 2 == 0 {
            fixture.publish_job(&["alpha"]).await;
        }
        fixture.opened("alpha").await.number
    })
    .await;
    assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>().len(), 1);
    assert_eq!((fixture.count("inbox_items").await, fixture.row("alpha").await.unwrap().head), (10, seq(10)));
}

pub(crate) async fn inboxes_that_are_locked_in_any_order_are_all_changed(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    for name in ["alpha", "beta"] {
        fixture.opened(name).await;
    }
    at_once(&fixture, 12, |fixture, number| {
        let mut pair = [fixture.recipient("alpha"), fixture.recipient("beta")];
        if number % 2 == 0 {
            pair.reverse();
        }
        async move {
            let unit = fixture.inbox(move |tx| {
                let pair = pair.clone();
                Box::pin(async move {
                    for recipient in &pair {
                        let mut row = tx.recipient(recipient).await?.unwrap();
                        row.policy.max_in_flight = Some(row.policy.max_in_flight.unwrap_or(0) + 1);
                        tx.save_recipient(&row).await?;
                    }
                    Ok(())
                })
            });
            unit.await.unwrap();
        }
    })
    .await;
    for name in ["alpha", "beta"] {
        assert_eq!(fixture.row(name).await.unwrap().policy.max_in_flight, Some(12), "no change was lost");
    }
}

pub(crate) async fn those_who_share_an_inbox_bring_its_due_time_forward_and_lose_nothing(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    fixture.opened("alpha").await;
    let start = fixture.now();
    at_once(&fixture, 30, |fixture, number| {
        let (recipient, due) = (fixture.recipient("alpha"), start.plus(Duration::from_secs(100 + (number as u64 * 7) % 30)));
        async move {
            let unit = fixture.inbox(move |tx| {
                let recipient = recipient.clone();
                Box::pin(async move {
                    let mut row = tx.share_recipient(&recipient).await?.unwrap();
                    row.next_due = Some(row.next_due.map_or(due, |known| known.min(due)));
                    tx.save_recipient(&row).await
                })
            });
            unit.await.unwrap();
        }
    })
    .await;
    assert_eq!(fixture.row("alpha").await.unwrap().next_due, Some(start.plus(Duration::from_secs(100))));
}

pub(crate) async fn a_tenant_has_one_lease_key_whoever_offered_it(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let keys = at_once(&fixture, 20, |fixture, number| {
        let (tenant, byte) = (fixture.tenant.clone(), number as u8);
        async move {
            let unit = fixture.inbox(move |tx| {
                let tenant = tenant.clone();
                Box::pin(async move { tx.lease_key(&tenant, &LeaseKey::new([byte; 32])).await })
            });
            *unit.await.unwrap().as_bytes()
        }
    })
    .await;
    assert_eq!(keys.into_iter().collect::<BTreeSet<_>>().len(), 1);
}

pub(crate) async fn what_is_created_at_once_is_created_once(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let outcomes = at_once(&fixture, 20, |fixture, _| {
        let (tenant, made) = (fixture.tenant.clone(), principal("sam", PrincipalKind::Person, fixture.now()));
        async move {
            let unit = fixture.admin(move |tx| {
                let (tenant, made) = (tenant.clone(), made.clone());
                Box::pin(async move { tx.create_principal(&tenant, &made).await })
            });
            unit.await
        }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(StoreError::Conflict(_)))), "{outcomes:?}");
}

pub(crate) async fn of_two_owners_one_stays_when_both_go_at_once(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    for turn in 0..10 {
        let names = [format!("a{turn}"), format!("b{turn}")];
        for name in &names {
            let made = Principal { role: Role::Owner, ..principal(name, PrincipalKind::Person, fixture.now()) };
            let tenant = fixture.tenant.clone();
            let unit = fixture.admin(move |tx| {
                let (tenant, made) = (tenant.clone(), made.clone());
                Box::pin(async move { tx.create_principal(&tenant, &made).await })
            });
            unit.await.unwrap();
        }
        let left = at_once(&fixture, 2, move |fixture, number| {
            let (tenant, name) = (fixture.tenant.clone(), names[number].clone());
            async move {
                let unit = fixture.admin(move |tx| {
                    let (tenant, name) = (tenant.clone(), name.clone());
                    Box::pin(async move {
                        if tx.owners(&tenant).await? < 2 { Ok(false) } else { tx.delete_principal(&tenant, &agent(&name)).await }
                    })
                });
                unit.await.unwrap()
            }
        })
        .await;
        assert_eq!(left.iter().filter(|gone| **gone).count(), if turn == 0 { 1 } else { 2 }, "one owner of earlier turns is there");
    }
    let keyset = Keyset { after: None, limit: 99 };
    assert_eq!(fixture.store.principals(&fixture.tenant, &keyset).await.unwrap().len(), 1);
}

pub(crate) async fn an_idempotency_key_is_taken_by_one(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    fixture.create_principal("sam", PrincipalKind::Person).await;
    let outcomes = at_once(&fixture, 20, |fixture, number| {
        let (tenant, now) = (fixture.tenant.clone(), fixture.now());
        let answer = IdempotentAnswer { request_hash: [1; 32], status: 201, body: number.to_string() };
        async move {
            let unit = fixture.admin(move |tx| {
                let (tenant, answer) = (tenant.clone(), answer.clone());
                Box::pin(async move {
                    let stored = tx.store_answer(&tenant, &agent("sam"), "key", &answer, now, now.minus(MINUTE)).await;
                    stored.map(|()| answer.body)
                })
            });
            unit.await
        }
    })
    .await;
    let stored: Vec<_> = outcomes.iter().flatten().cloned().collect();
    assert_eq!(stored.len(), 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(StoreError::Conflict(_)))), "{outcomes:?}");
    let read = fixture.store.idempotent_answer(&fixture.tenant, &agent("sam"), "key", fixture.now().minus(MINUTE)).await.unwrap();
    assert_eq!(read.map(|answer| answer.body).as_ref(), stored.first());
}

pub(crate) async fn denials_that_are_counted_at_once_are_all_counted(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    at_once(&fixture, 20, async |fixture, number| {
        let denial = |target: &str| AuditEntry {
            id: 0,
            at: fixture.now(),
            actor: Some(agent("sam")),
            action: "events.publish".to_owned(),
            target: target.to_owned(),
            decision: AuditDecision::Deny,
            count: 1,
            before: None,
            after: None,
        };
        let mut both = [(fixture.tenant.clone(), denial("a/b")), (fixture.tenant.clone(), denial("c/d"))];
        if number % 2 == 0 {
            both.reverse();
        }
        fixture.store.record_denials(&both).await.unwrap();
    })
    .await;
    let lines = fixture.store.audit(&fixture.tenant, &AuditFilter::default(), &Keyset { after: None, limit: 99 }).await.unwrap();
    let mut counts: Vec<_> = lines.iter().map(|line| (line.target.as_str(), line.count)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [("a/b", 20), ("c/d", 20)]);
}

pub(crate) async fn a_ring_that_many_add_is_there_once(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::with_agents(harness, &["alpha"]).await);
    let hook = fixture.hook_for("alpha").await;
    let rung = hook.clone();
    let added = at_once(&fixture, 20, move |fixture, _| {
        let rings = [ring_at(&rung, 1, fixture.now()), ring_at(&rung, 2, fixture.now())];
        async move { fixture.add(&rings).await.unwrap() }
    })
    .await;
    assert_eq!(added.into_iter().sum::<u64>(), 2);
    assert_eq!(fixture.outstanding(&[hook.id]).await, [(hook.id, 2)]);
}

pub(crate) async fn of_nodes_that_take_a_group_the_last_one_moves_positions(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::with_agents(harness, &["alpha"]).await);
    fixture.hook_for("alpha").await;
    let group = hooks::HookStore::tenants(&*fixture.store, &super::hooks::EVERY_GROUP, None, 9).await.unwrap()[0].group;
    let moved = at_once(&fixture, 10, move |fixture, number| {
        let tenant = fixture.tenant.clone();
        async move {
            let epoch = fixture.store.head(&tenant).await.unwrap().unwrap().epoch;
            let generation = fixture.hook_tx(move |tx| Box::pin(async move { tx.take_group(group).await })).await.unwrap();
            tokio::task::yield_now().await;
            let position = LogPosition { epoch, seq: seq(number as u64) };
            let unit = fixture.hook_tx(move |tx| {
                let tenant = tenant.clone();
                Box::pin(async move { tx.advance(&tenant, group, generation, position).await })
            });
            (generation, unit.await.unwrap())
        }
    })
    .await;
    let generations: BTreeSet<_> = moved.iter().map(|(generation, _)| *generation).collect();
    assert_eq!(generations.len(), 10, "no two have the same");
    let last = moved.iter().max_by_key(|(generation, _)| *generation).unwrap();
    assert!(last.1, "whoever took it last moves it");
    assert_ne!(group, GroupNumber(u32::MAX));
}

pub(crate) async fn a_request_that_names_a_recipient_twice_is_refused_whole_and_its_neighbours_are_not(harness: &dyn Harness) {
    let fixture = Arc::new(Fixture::new(harness).await);
    let mut answers = at_once(&fixture, 30, async |fixture, number| {
        let request =
            if number % 3 == 1 { vec![fixture.event("x"), fixture.job(&["beta", "beta"])] } else { vec![fixture.job(&["alpha"])] };
        (number, fixture.append(request).await)
    })
    .await;
    answers.sort_by_key(|(number, _)| *number);
    for (number, answer) in answers {
        if number % 3 == 1 {
            assert!(matches!(answer, Err(StoreError::Conflict(_))), "{answer:?}");
        } else {
            assert!(new_seq(&answer.unwrap()[0]) <= 20);
        }
    }
    assert_eq!((fixture.count("inbox_items").await, fixture.head().await), (20, 20));
}
