//! Wall clocks that are ten minutes apart: the database's time decides, so they change nothing.

use std::path::PathBuf;

use serde_json::json;
use testkit::eventually;

use super::fleet::Fleet;
use crate::inbox::{FAST, ack, claim, claim_one, give};

/// What a node's wall clock is off by; the monotonic clock is left alone, as on a machine whose time was set wrongly.
const SKEWS: [&str; 3] = ["+0s", "+600s", "-600s"];

/// The library of the `faketime` package.
fn faketime() -> String {
    let lies = |directory: PathBuf| Some(directory.join("faketime/libfaketime.so.1")).filter(|path| path.is_file());
    let mut places = std::fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path()).chain([PathBuf::from("/usr/lib")]);
    let found = places.find_map(lies);
    found.expect("libfaketime is missing; on Debian: apt-get install faketime").to_str().unwrap().to_owned()
}

async fn skewed() -> Fleet {
    let library = faketime();
    let environment = |node: usize| {
        let set = [("LD_PRELOAD", library.as_str()), ("FAKETIME", SKEWS[node]), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
        set.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    };
    Fleet::with_environment(SKEWS.len(), &FAST, environment).await
}

#[tokio::test]
async fn clocks_ten_minutes_apart_change_no_lease_decision() {
    let fleet = skewed().await;
    let cast = fleet.cast_at(0);
    let agents: Vec<_> = (0..SKEWS.len()).map(|node| fleet.cast_at(node).alpha).collect();
    // A long lease holds on every node, whichever gave it, also before the sweeper.
    let mut held = Vec::new();
    for agent in &agents {
        give(&cast, json!({})).await;
        held.push(claim_one(agent, json!({"lease_seconds": 120})).await);
    }
    // A short one lapses soon on every node, whichever gave it.
    for (giver, agent) in agents.iter().enumerate() {
        let id = give(&cast, json!({"priority": "urgent"})).await;
        let first = claim_one(agent, json!({"lease_seconds": 1})).await;
        assert_eq!(first["event_id"], json!(id));
        let other = &agents[(giver + 1) % agents.len()];
        let again = eventually("the lease has lapsed", async || claim(other, json!({"lease_seconds": 120})).await.pop()).await;
        assert_eq!(again["event_id"], json!(id), "no long lease has lapsed");
        assert_eq!(ack(other, &again, "completed").await["outcome"], "ok");
    }
    // Nothing else has come back, on any of them.
    for agent in &agents {
        assert_eq!(claim(agent, json!({})).await, Vec::<serde_json::Value>::new());
    }
    // Each lease still ends with its holder's acknowledge, through another node than gave it.
    for (giver, claimed) in held.iter().enumerate() {
        assert_eq!(ack(&agents[(giver + 1) % agents.len()], claimed, "completed").await["outcome"], "ok");
    }
}
