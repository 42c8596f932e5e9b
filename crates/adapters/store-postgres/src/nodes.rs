//! Nodes over this database, and their leases on work.

use std::time::Duration;

use async_trait::async_trait;
use cluster::{ClusterStore, HeldLease, Node, NodeSeen, NodeState, WorkLease, WorkName};
use domain::{NodeId, StoreError};
use sqlx_postgres::PgRow;

use crate::codec::{self, from_natural};
use crate::db;
use crate::failure::Failure;
use crate::sql::sql;
use crate::store::PostgresStore;
use crate::tx::{self, WriteTx};

fn work(row: &PgRow, column: usize) -> Result<WorkName, Failure> {
    WorkName::parse(codec::get(row, column)?).map_err(|_| codec::unreadable(column))
}

fn held(row: &PgRow) -> Result<HeldLease, Failure> {
    Ok(HeldLease { work: work(row, 0)?, generation: codec::natural(row, 1)? })
}

fn seen(row: &PgRow) -> Result<NodeSeen, Failure> {
    let node = Node {
        id: NodeId::new(codec::uuid(row, 0)?),
        name: codec::get(row, 1)?,
        address: codec::get(row, 2)?,
        version: codec::get(row, 3)?,
        state: codec::word(row, 4, NodeState::parse)?,
        started_at: codec::timestamp(row, 5)?,
    };
    Ok(NodeSeen { node, seen_at: codec::timestamp(row, 6)? })
}

/// Works and generations, each as an array.
fn columns(leases: &[HeldLease]) -> (Vec<&str>, Vec<i64>) {
    leases.iter().map(|lease| (lease.work.as_str(), from_natural(lease.generation))).unzip()
}

async fn beat(tx: &mut WriteTx, node: &Node, forget_after: Duration) -> Result<(), Failure> {
    let now = tx.now();
    db::query(sql!("cluster/beat"))
        .bind(node.id.uuid())
        .bind(node.name.as_str())
        .bind(node.address.as_str())
        .bind(node.version.as_str())
        .bind(node.state.as_str())
        .bind(node.started_at.as_micros())
        .bind(now.as_micros())
        .execute(tx.connection())
        .await?;
    db::query(sql!("cluster/forget_nodes")).bind(now.minus(forget_after).as_micros()).execute(tx.connection()).await?;
    Ok(())
}

async fn take(tx: &mut WriteTx, node: NodeId, works: &[WorkName], most: usize, duration: Duration) -> Result<Vec<HeldLease>, Failure> {
    let names: Vec<&str> = works.iter().map(WorkName::as_str).collect();
    db::query(sql!("cluster/add_works")).bind(&names).execute(tx.connection()).await?;
    let now = tx.now();
    let taken = db::query(sql!("cluster/take_leases"))
        .bind(node.uuid())
        .bind(&names)
        .bind(codec::from_count(most))
        .bind(now.as_micros())
        .bind(now.plus(duration).as_micros())
        .fetch_all(tx.connection())
        .await?;
    taken.iter().map(held).collect()
}

async fn renew(tx: &mut WriteTx, node: NodeId, leases: &[HeldLease], duration: Duration) -> Result<Vec<HeldLease>, Failure> {
    let (works, generations) = columns(leases);
    let now = tx.now();
    let renewed = db::query(sql!("cluster/renew_leases"))
        .bind(node.uuid())
        .bind(works)
        .bind(generations)
        .bind(now.as_micros())
        .bind(now.plus(duration).as_micros())
        .fetch_all(tx.connection())
        .await?;
    renewed.iter().map(held).collect()
}

async fn give_back(tx: &mut WriteTx, node: NodeId, leases: &[HeldLease]) -> Result<(), Failure> {
    let (works, generations) = columns(leases);
    db::query(sql!("cluster/give_back")).bind(node.uuid()).bind(works).bind(generations).execute(tx.connection()).await?;
    Ok(())
}

async fn leave(tx: &mut WriteTx, node: NodeId) -> Result<(), Failure> {
    db::query(sql!("cluster/give_all_back")).bind(node.uuid()).execute(tx.connection()).await?;
    db::query(sql!("cluster/remove_node")).bind(node.uuid()).execute(tx.connection()).await?;
    Ok(())
}

impl PostgresStore {
    async fn seen_nodes(&self) -> Result<Vec<NodeSeen>, Failure> {
        let mut connection = self.shared.presence.lend_to_read().await?;
        let rows = db::query(sql!("cluster/nodes")).fetch_all(&mut *connection).await?;
        // A newer release may say of itself what this one does not know.
        let readable = |row: &PgRow| match seen(row) {
            Ok(seen) => Some(seen),
            Err(_) => {
                tracing::warn!("a node that cannot be read is passed by");
                None
            }
        };
        Ok(rows.iter().filter_map(readable).collect())
    }

    async fn held_leases(&self) -> Result<Vec<WorkLease>, Failure> {
        let now = self.clock().now();
        let mut connection = self.shared.presence.lend_to_read().await?;
        let rows = db::query(sql!("cluster/leases")).bind(now.as_micros()).fetch_all(&mut *connection).await?;
        let lease = |row: &PgRow| {
            Ok(WorkLease { work: work(row, 0)?, node: NodeId::new(codec::uuid(row, 1)?), generation: codec::natural(row, 2)? })
        };
        rows.iter().map(lease).collect()
    }
}

#[async_trait]
impl ClusterStore for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn beat(&self, node: &Node, forget_after: Duration) -> Result<(), StoreError> {
        let node = node.clone();
        tx::run_on(&self.shared, &self.shared.presence, "node_beat", move |tx| {
            let node = node.clone();
            Box::pin(async move { beat(tx, &node, forget_after).await })
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError> {
        Ok(self.seen_nodes().await?)
    }

    async fn leases(&self) -> Result<Vec<WorkLease>, StoreError> {
        Ok(self.held_leases().await?)
    }

    async fn take(&self, node: NodeId, works: &[WorkName], most: usize, duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        let works = works.to_vec();
        tx::run_on(&self.shared, &self.shared.presence, "take_work", move |tx| {
            let works = works.clone();
            Box::pin(async move { take(tx, node, &works, most, duration).await })
        })
        .await
    }

    async fn renew(&self, node: NodeId, held: &[HeldLease], duration: Duration) -> Result<Vec<HeldLease>, StoreError> {
        let held = held.to_vec();
        tx::run_on(&self.shared, &self.shared.presence, "renew_work", move |tx| {
            let held = held.clone();
            Box::pin(async move { renew(tx, node, &held, duration).await })
        })
        .await
    }

    async fn give_back(&self, node: NodeId, held: &[HeldLease]) -> Result<(), StoreError> {
        let held = held.to_vec();
        tx::run_on(&self.shared, &self.shared.presence, "give_work_back", move |tx| {
            let held = held.clone();
            Box::pin(async move { give_back(tx, node, &held).await })
        })
        .await
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        tx::run_on(&self.shared, &self.shared.presence, "node_leave", move |tx| Box::pin(async move { leave(tx, node).await })).await
    }
}
