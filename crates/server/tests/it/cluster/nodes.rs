//! Who is there, as the operator sees it.

use testkit::{Http, eventually};

use super::fleet::Fleet;

async fn listed(owner: &Http) -> Vec<(String, String)> {
    let page = owner.get("/v1/nodes").await.expect(200);
    let member = |node: &serde_json::Value, name: &str| node[name].as_str().unwrap().to_owned();
    page["items"].as_array().unwrap().iter().map(|node| (member(node, "name"), member(node, "state"))).collect()
}

fn those(nodes: &[(&str, &str)]) -> Vec<(String, String)> {
    nodes.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
}

#[tokio::test]
async fn nodes_are_listed_lost_when_they_are_killed_and_gone_when_they_leave() {
    let mut fleet = Fleet::of(3, &[]).await;
    let owner = fleet.owner(0);
    let all = those(&[("node0", "serving"), ("node1", "serving"), ("node2", "serving")]);
    eventually("all are there", async || (listed(&owner).await == all).then_some(())).await;
    let page = fleet.owner(1).get("/v1/nodes").await.expect(200);
    let selves: Vec<_> = page["items"].as_array().unwrap().iter().filter(|node| node["is_self"] == true).collect();
    assert_eq!((selves.len(), &selves[0]["name"]), (1, &"node1".into()));
    fleet.take(2).kill();
    let lost = those(&[("node0", "serving"), ("node1", "serving"), ("node2", "lost")]);
    eventually("the killed one is lost", async || (listed(&owner).await == lost).then_some(())).await;
    let leaving = fleet.take(1);
    leaving.ask_to_stop();
    assert!(leaving.wait().success());
    let left = those(&[("node0", "serving"), ("node2", "lost")]);
    eventually("who leaves is gone", async || (listed(&owner).await == left).then_some(())).await;
    // All of the work is done by whoever is left.
    eventually("all of the work is done", async || {
        let page = owner.get("/v1/nodes").await.expect(200);
        let work = page["items"].as_array().unwrap().iter().find(|node| node["is_self"] == true)?["work"].as_array()?.len();
        (work >= 3).then_some(())
    })
    .await;
    fleet.cast.alpha.get("/v1/nodes").await.expect_problem(403, "forbidden");
    fleet.start_again(2);
    eventually("it is back under another identity", async || {
        listed(&owner).await.contains(&("node2".to_owned(), "serving".to_owned())).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_with_another_master_key_does_not_start_and_says_why() {
    let fleet = Fleet::of(1, &[]).await;
    let other = tempfile::tempdir().unwrap();
    let mut options = fleet.node(0).options().clone().with("security.master_key", "HxweHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=");
    options.data = other.path().join("data");
    let output = options.command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("another master key"), "{said}");
}
