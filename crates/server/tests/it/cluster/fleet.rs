//! Servers over one database.

use tempfile::TempDir;
use testkit::postgres::{Cluster, TestDatabase};
use testkit::{Cast, Http, ServerOptions, ServerProcess, cast, eventually};

/// The master key of all nodes: what one sealed the others open.
const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// An address that nobody listens on.
const NOWHERE: &str = "postgres://postgres@127.0.0.1:1/nowhere";

/// What is due on a lost node is taken over soon, so that tests need not wait long.
const SOON: [(&str, &str); 3] = [("cluster.lease_duration", "2s"), ("cluster.node_timeout", "3s"), ("hooks.attempt_timeout", "500ms")];

/// Servers over one database, with the usual cast.
pub(crate) struct Fleet {
    /// Absent where a test has taken one out.
    nodes: Vec<Option<ServerProcess>>,
    pub(crate) cast: Cast,
    owner_token: String,
    options: Vec<ServerOptions>,
    // After the servers: they are stopped before their database goes.
    pub(crate) database: Option<TestDatabase>,
    directory: TempDir,
}

impl Fleet {
    /// So many nodes that hear each other, over a database of the shared cluster.
    pub(crate) async fn of(count: usize, config: &[(&str, &str)]) -> Self {
        let database = Cluster::shared().empty_database().await;
        let url = database.url.clone();
        let mut fleet = Self::over(&url, count, config).await;
        fleet.database = Some(database);
        fleet.are_listening().await;
        fleet
    }

    /// So many nodes that do not hear each other: what they know of each other is in the database.
    pub(crate) async fn deaf(count: usize, config: &[(&str, &str)]) -> Self {
        let database = Cluster::shared().empty_database().await;
        let url = database.url.clone();
        let keys: Vec<_> = config.iter().copied().chain([("database.listen_url", NOWHERE)]).collect();
        let mut fleet = Self::over(&url, count, &keys).await;
        fleet.database = Some(database);
        fleet
    }

    /// Nodes that hear each other, each with environment variables of its own.
    pub(crate) async fn with_environment(
        count: usize,
        config: &[(&str, &str)],
        environment: impl Fn(usize) -> Vec<(String, String)>,
    ) -> Self {
        let database = Cluster::shared().empty_database().await;
        let url = database.url.clone();
        let mut fleet = Self::made(&url, count, config, environment).await;
        fleet.database = Some(database);
        fleet.are_listening().await;
        fleet
    }

    /// So many nodes over the database at `url`.
    pub(crate) async fn over(url: &str, count: usize, config: &[(&str, &str)]) -> Self {
        Self::made(url, count, config, |_| Vec::new()).await
    }

    async fn made(url: &str, count: usize, config: &[(&str, &str)], environment: impl Fn(usize) -> Vec<(String, String)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let node = |number: usize| {
            let data = directory.path().join(format!("node{number}")).join("data");
            std::fs::create_dir_all(&data).unwrap();
            let options = ServerOptions::new(env!("CARGO_BIN_EXE_doorstep"), data).with("security.master_key", MASTER_KEY);
            let options =
                options.with("database.url", url).with("database.auto_migrate", "true").with("cluster.node_name", &format!("node{number}"));
            let mut options = SOON.iter().chain(config).fold(options, |options, (key, value)| options.with(key, value));
            options.environment = environment(number);
            options
        };
        let options: Vec<_> = (0..count).map(node).collect();
        // The first one makes the schema and the first tenant.
        let nodes: Vec<_> = options.iter().cloned().map(|options| Some(ServerProcess::start(options))).collect();
        let first = nodes[0].as_ref().unwrap();
        let owner_token = first.owner_token();
        let cast = cast(&first.owner()).await;
        Self { nodes, cast, owner_token, options, database: None, directory }
    }

    pub(crate) fn node(&self, number: usize) -> &ServerProcess {
        self.nodes[number].as_ref().unwrap()
    }

    pub(crate) fn url(&self, number: usize) -> &str {
        &self.node(number).url
    }

    pub(crate) fn owner(&self, number: usize) -> Http {
        Http::new(self.url(number), &self.owner_token)
    }

    /// The cast, calling this node.
    pub(crate) fn cast_at(&self, number: usize) -> Cast {
        let (cast, url) = (self.cast.clone(), self.url(number));
        Cast {
            owner: cast.owner.at(url),
            alpha: cast.alpha.at(url),
            producer: cast.producer.at(url),
            sam: cast.sam.at(url),
            alpha_general_grant: cast.alpha_general_grant,
        }
    }

    /// Takes a node out, e.g. to kill it.
    pub(crate) fn take(&mut self, number: usize) -> ServerProcess {
        self.nodes[number].take().unwrap()
    }

    /// Starts a node again that was taken out.
    pub(crate) fn start_again(&mut self, number: usize) {
        assert!(self.nodes[number].is_none() && self.directory.path().is_dir());
        self.nodes[number] = Some(ServerProcess::start(self.options[number].clone()));
    }

    /// Waits until every node hears the others.
    pub(crate) async fn are_listening(&self) {
        for server in self.nodes.iter().flatten() {
            eventually("hints are heard", async || (metric(&server.url, "doorstep_hints_listening").await == 1).then_some(())).await;
        }
    }

    /// The node that does this work now, as a node tells that is there.
    pub(crate) async fn worker(&self, asked: usize, work: &str) -> usize {
        let owner = self.owner(asked);
        eventually(&format!("somebody does {work}"), async || {
            let listed = owner.get("/v1/nodes").await.expect(200);
            let node = listed["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|node| node["state"] == "serving" && node["work"].as_array().unwrap().iter().any(|each| each == work))?;
            node["name"].as_str().unwrap().strip_prefix("node")?.parse().ok()
        })
        .await
    }

    pub(crate) fn database(&self) -> &TestDatabase {
        self.database.as_ref().unwrap()
    }
}

/// A sample of a node's metrics that counts, with its labels if it has any; 0 when it is not there.
pub(crate) async fn metric(url: &str, name: &str) -> u64 {
    let answer = Http::anonymous(url).get("/metrics").await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|value| value.trim().split('.').next()?.parse().ok()).unwrap_or(0)
}
