//! What is due: tenants take turns, so that nobody's many rings keep another's waiting.
//!
//! Costs a few look-ups for each tenant with outstanding rings and for each hook that is answered or passed over, however many rings there are.

use std::collections::HashSet;

use domain::{PrincipalId, TenantId, Timestamp};
use hooks::{DueHook, DueQuery, GroupNumber, HookId};
use rusqlite::params;

use super::dispatch::THE_GROUP;
use super::{deliveries, keys, registrations, rows};
use crate::codec;
use crate::failure::Failure;
use crate::identity::first;
use crate::readers::ReadTx;
use crate::sql::sql;
use crate::tx::read_head;

/// A question that can travel to a reader.
pub(super) struct Question {
    now: Timestamp,
    hooks: usize,
    per_hook: usize,
    is_for_the_group: bool,
    except: HashSet<HookId>,
    except_tenants: HashSet<TenantId>,
}

impl From<DueQuery<'_>> for Question {
    fn from(query: DueQuery<'_>) -> Self {
        Self {
            now: query.now,
            hooks: query.hooks,
            per_hook: query.per_hook,
            is_for_the_group: query.groups.contains(&THE_GROUP),
            except: query.except.iter().copied().collect(),
            except_tenants: query.except_tenants.iter().cloned().collect(),
        }
    }
}

/// One hook of each tenant in turn, until there are enough.
pub(super) fn due(tx: &ReadTx, question: &Question) -> Result<Vec<DueHook>, Failure> {
    let mut found = Vec::new();
    if question.per_hook == 0 || !question.is_for_the_group {
        return Ok(found);
    }
    let mut waiting = Vec::new();
    for (tenant, first_due) in tenants(tx, question.now)? {
        if !question.except_tenants.contains(&tenant) {
            waiting.push((first_due, Turns { tenant, last: (i64::MIN, Vec::new()) }));
        }
    }
    // The tenant that waits longest begins. The order of names in which they were found decides between equals.
    waiting.sort_by_key(|(first_due, _)| *first_due);
    let mut waiting: Vec<Turns> = waiting.into_iter().map(|(_, turns)| turns).collect();
    while found.len() < question.hooks && !waiting.is_empty() {
        let mut again = Vec::with_capacity(waiting.len());
        for mut turns in waiting {
            if found.len() == question.hooks {
                break;
            }
            if let Some(hook) = turns.next(tx, question)? {
                found.push(hook);
                again.push(turns);
            }
        }
        waiting = again;
    }
    Ok(found)
}

/// When the first ring of an active tenant of these groups is due.
pub(super) fn next_due(tx: &ReadTx, groups: &[GroupNumber]) -> Result<Option<Timestamp>, Failure> {
    if !groups.contains(&THE_GROUP) {
        return Ok(None);
    }
    let tenants = tenants(tx, Timestamp::from_micros(i64::MAX))?;
    Ok(tenants.into_iter().map(|(_, first_due)| first_due).min())
}

/// Active tenants with a ring that is due by `now`, by name, each with the time from when it is.
fn tenants(tx: &ReadTx, now: Timestamp) -> Result<Vec<(TenantId, Timestamp)>, Failure> {
    let mut statement = tx.prepare(sql!("hooks/next_due_tenant"))?;
    let mut tenants = Vec::new();
    let mut after = String::new();
    while let Some((name, first_due)) = first(statement.query([&after])?, |row| Ok((row.get::<_, String>(0)?, codec::timestamp(row, 1)?)))?
    {
        if first_due <= now
            && let Ok(tenant) = name.parse::<TenantId>()
            && read_head(tx.connection(), &tenant)?.is_some_and(|head| head.is_active())
        {
            tenants.push((tenant, first_due));
        }
        after = name;
    }
    Ok(tenants)
}

/// The due hooks of one tenant, the longest due first.
struct Turns {
    tenant: TenantId,
    /// The hook that came last, with the time from when it was due.
    last: (i64, Vec<u8>),
}

impl Turns {
    /// The next hook that can be rung; passes over those whose agent is disabled, and those of which nothing can be read.
    fn next(&mut self, tx: &ReadTx, question: &Question) -> Result<Option<DueHook>, Failure> {
        let mut statement = tx.prepare(sql!("hooks/next_due_hook"))?;
        loop {
            let key = params![self.tenant.as_str(), question.now.as_micros(), self.last.0, self.last.1];
            let next = first(statement.query(key)?, |row| {
                let (id, agent) = (rows::hook_id(row, 1).ok(), codec::text::<PrincipalId>(row, 2).ok());
                Ok(((row.get(0)?, row.get(1)?), id.zip(agent)))
            })?;
            let Some((place, named)) = next else { return Ok(None) };
            self.last = place;
            let Some((id, agent)) = named else { continue };
            if !question.except.contains(&id)
                && is_enabled(tx, &self.tenant, &agent)?
                && let Some(hook) = self.read(tx, question, id)?
            {
                return Ok(Some(hook));
            }
        }
    }

    fn read(&self, tx: &ReadTx, question: &Question, id: HookId) -> Result<Option<DueHook>, Failure> {
        let (connection, metrics) = (tx.connection(), tx.metrics());
        let Some(hook) = registrations::find(connection, metrics, &self.tenant, id)? else { return Ok(None) };
        let deliveries = deliveries::due(connection, metrics, &self.tenant, id, question.now, question.per_hook)?;
        if deliveries.is_empty() {
            return Ok(None);
        }
        Ok(Some(DueHook { hook, group: THE_GROUP, keys: keys::keys(connection, metrics, id)?, deliveries }))
    }
}

fn is_enabled(tx: &ReadTx, tenant: &TenantId, agent: &PrincipalId) -> Result<bool, Failure> {
    let mut statement = tx.prepare(sql!("authz/enabled"))?;
    let enabled = first(statement.query([tenant.as_str(), agent.as_str()])?, |row| Ok(row.get::<_, i64>(0)? != 0))?;
    Ok(enabled == Some(true))
}
