//! `claim-under-history`: what claiming costs when millions of items are over, and while somebody reads the store for long.

use rusqlite::{Connection, OpenFlags};

use super::{RowName, inbox};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::Ground;
use crate::report::{Line, Target, Unit};

/// Items that are over.
const HISTORY: usize = 5_000_000;
/// Items that are claimed while a read transaction is held open.
const UNDER_A_READER: usize = 100_000;
/// Items at once, and workers.
const SHAPE: (usize, usize) = (50, 8);

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let server = ground.serve(&[])?;
    let (address, token) = (server.address, ground.reader.as_str());
    let (batch, workers) = SHAPE;
    let work = |what| {
        bench.each_round(RowName::ClaimUnderHistory, |_| {
            bench.measure("giving work", inbox::give(ground, address, inbox::enough(bench.window)))?;
            bench.measure(what, inbox::work_off(address, token, batch, workers, bench.window))
        })
    };
    let empty = work("claiming on an empty store")?;
    let reader = read_for_long(ground)?;
    bench.measure("giving work", inbox::give(ground, address, bench.sized(UNDER_A_READER)))?;
    let read = work("claiming beside a reader")?;
    drop(reader);
    let history = bench.sized(HISTORY);
    let mut left = history;
    while left > 0 {
        let step = left.min(200_000);
        bench.measure("giving work", inbox::give(ground, address, step))?;
        bench.measure("working it off", work_off_count(address, token, step))?;
        left -= step;
    }
    let old = work("claiming under history")?;
    server.stop()?;
    let figure = format!("items, {history} over");
    Ok(vec![
        Line::new(RowName::ClaimUnderHistory, figure, Unit::PerSecond, old)
            .over("on an empty store", empty.clone())
            .target(Target::OfFloor(1.0 / 1.3)),
        Line::new(RowName::ClaimUnderHistory, "items, beside a long read", Unit::PerSecond, read)
            .over("on an empty store", empty)
            .target(Target::OfFloor(0.5)),
    ])
}

/// A read transaction that stays open: the store cannot shorten its write-ahead log meanwhile.
fn read_for_long(ground: &Ground) -> Result<Connection, Failure> {
    let connection = Connection::open_with_flags(ground.database(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("BEGIN")?;
    connection.query_row("SELECT count(*) FROM store_meta", [], |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

/// Works off `count` items, as fast as it goes.
async fn work_off_count(address: std::net::SocketAddr, token: &str, count: usize) -> Result<(), Failure> {
    let mut worker = inbox::Worker::connect(address, token, 100, 0).await?;
    let mut done = 0;
    while done < count {
        let claims = worker.claim().await?;
        if claims.is_empty() {
            break;
        }
        done += claims.len();
        worker.acknowledge(&claims).await?;
    }
    Ok(())
}
