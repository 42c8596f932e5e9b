//! What a row runs on: a data directory with a channel, a publisher and readers in it, and servers started over it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Http, ServerOptions, ServerProcess};
use tokio::runtime::Runtime;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::wire::{HttpConnection, Request};

/// Where every row publishes.
pub(crate) const CHANNEL: &str = "bench/load";
/// Bytes of every payload.
pub(crate) const PAYLOAD_BYTES: usize = 512;
/// The name of the embedded store's database file.
const DATABASE: &str = "doorstep.sqlite";
/// Events in a request that only fills the log.
const FILL: usize = 1_000;

/// What a store holds beside what a row needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surroundings {
    /// Events in the log.
    pub(crate) events: usize,
    /// Agents that may read the channel.
    pub(crate) agents: usize,
    /// Other tenants.
    pub(crate) tenants: usize,
}

/// A prepared data directory.
#[derive(Debug)]
pub(crate) struct Ground {
    binary: PathBuf,
    directory: TempDir,
    /// The shared store; the embedded one when absent.
    database: Option<String>,
    /// The token of the owner.
    pub(crate) owner: String,
    /// The token of an app that may publish.
    pub(crate) producer: String,
    /// The token of an agent that may read.
    pub(crate) reader: String,
    /// The token of an app that may read.
    pub(crate) watcher: String,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The process. Dropping it kills it.
    pub(crate) process: ServerProcess,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts one.
    pub(crate) fn start(options: ServerOptions) -> Result<Self, Failure> {
        let process = ServerProcess::start(options);
        let address = process.url.strip_prefix("http://").and_then(|address| address.parse().ok());
        let address = address.ok_or_else(|| Failure::Wrong(format!("the server listens on {}", process.url)))?;
        Ok(Self { process, address })
    }

    /// Stops it in the regular way.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        self.process.ask_to_stop();
        let status = self.process.wait();
        if status.success() { Ok(()) } else { Err(Failure::Wrong(format!("the server stopped with {status}"))) }
    }
}

impl Ground {
    /// Makes a fresh data directory below `directory`.
    pub(crate) fn prepare(binary: &Path, directory: &Path, surroundings: Surroundings, runtime: &Runtime) -> Result<Self, Failure> {
        Self::over(binary, directory, None, surroundings, runtime)
    }

    /// The same over an empty PostgreSQL database.
    pub(crate) fn shared(bench: &Bench, database: &str) -> Result<Self, Failure> {
        Self::over(&bench.binary, &bench.directory, Some(database.to_owned()), Surroundings::default(), &bench.runtime)
    }

    fn over(
        binary: &Path,
        directory: &Path,
        database: Option<String>,
        surroundings: Surroundings,
        runtime: &Runtime,
    ) -> Result<Self, Failure> {
        let directory = tempfile::tempdir_in(directory).map_err(Failure::io("make a data directory"))?;
        let server = Server::start(options(binary, directory.path(), "data", database.as_deref()))?;
        let owner = server.process.owner_token();
        let http = Http::new(&server.process.url, &owner);
        let ground = runtime.block_on(async {
            make(&http, "/v1/spaces", json!({"id": "bench"})).await?;
            make(&http, "/v1/spaces/bench/channels", json!({"id": "load"})).await?;
            let producer = principal(&http, "app", "producer", "post").await?;
            let reader = principal(&http, "agent", "reader", "read").await?;
            let watcher = principal(&http, "app", "watcher", "read").await?;
            let ground = Self { binary: binary.to_owned(), directory, database, owner, producer, reader, watcher };
            ground.surround(&http, surroundings).await?;
            ground.publish(server.address, surroundings.events).await?;
            Ok::<_, Failure>(ground)
        })?;
        server.stop()?;
        Ok(ground)
    }

    /// Starts a server over it, with these configuration keys set.
    pub(crate) fn serve(&self, config: &[(&str, &str)]) -> Result<Server, Failure> {
        self.serve_in("data", config)
    }

    /// Another node over the shared store, with the master key of the first.
    pub(crate) fn serve_node(&self, number: usize, config: &[(&str, &str)]) -> Result<Server, Failure> {
        let key = self.directory.path().join("data").join("master-key").to_string_lossy().into_owned();
        self.serve_in(&format!("node-{number}"), &[config, &[("security.master_key_file", &key)]].concat())
    }

    fn serve_in(&self, data: &str, config: &[(&str, &str)]) -> Result<Server, Failure> {
        let options = options(&self.binary, self.directory.path(), data, self.database.as_deref());
        Server::start(config.iter().fold(options, |options, (key, value)| options.with(key, value)))
    }

    /// The store's database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.path().join("data").join(DATABASE)
    }

    /// Another agent that may read, and its token.
    pub(crate) async fn agent(&self, server: &Server, id: &str) -> Result<String, Failure> {
        principal(&Http::new(&server.process.url, &self.owner), "agent", id, "read").await
    }

    /// Publishes `events` in large requests.
    pub(crate) async fn publish(&self, address: SocketAddr, events: usize) -> Result<(), Failure> {
        let mut connection = HttpConnection::connect(address).await?;
        let full = self.publish_request(FILL);
        for _ in 0..events / FILL {
            connection.call(&full).await?.success()?;
        }
        if !events.is_multiple_of(FILL) {
            connection.call(&self.publish_request(events % FILL)).await?.success()?;
        }
        Ok(())
    }

    /// A request that publishes `events` events.
    pub(crate) fn publish_request(&self, events: usize) -> Vec<u8> {
        let event = event(&"x".repeat(PAYLOAD_BYTES - r#"{"text":""}"#.len()));
        let body = if events == 1 { event } else { format!(r#"{{"events":[{}]}}"#, vec![event; events].join(",")) };
        Request::new("POST", "/v1/events").bearer(&self.producer).json(body).render()
    }

    /// Makes a consumer of `token` that stands at the head, and leaves it.
    pub(crate) async fn stand_at_head(&self, address: SocketAddr, token: &str, consumer: &str) -> Result<(), Failure> {
        let path = format!("/v1/agents/me/consumers/{consumer}/events?limit=1");
        let mut connection = HttpConnection::connect(address).await?;
        connection.call(&Request::new("GET", &path).bearer(token).render()).await?.success()?;
        Ok(())
    }

    async fn surround(&self, http: &Http, surroundings: Surroundings) -> Result<(), Failure> {
        for number in 0..surroundings.agents {
            let id = format!("bystander-{number}");
            make(http, "/v1/principals", json!({"kind": "agent", "id": id})).await?;
            make(http, "/v1/grants", json!({"principal": id, "resource": CHANNEL, "permission": "read"})).await?;
        }
        for number in 0..surroundings.tenants {
            make(http, "/v1/tenants", json!({"id": format!("tenant-{number}")})).await?;
        }
        Ok(())
    }
}

/// An event whose payload is `{"text": text}`.
pub(crate) fn event(text: &str) -> String {
    format!(r#"{{"type":"bench.event","channel":"{CHANNEL}","payload":{{"text":"{text}"}}}}"#)
}

fn options(binary: &Path, directory: &Path, data: &str, database: Option<&str>) -> ServerOptions {
    let options = ServerOptions::new(binary, directory.join(data));
    match database {
        Some(url) => options.with("database.url", url).with("database.auto_migrate", "true"),
        None => options,
    }
}

/// Creates something and answers what the server says of it.
async fn make(http: &Http, path: &str, body: Value) -> Result<Value, Failure> {
    let answer = http.post(path, &body).await;
    if (200..300).contains(&answer.status) {
        return Ok(answer.json());
    }
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Err(Failure::Refused { request: format!("POST {path}"), status: answer.status, body })
}

/// Creates a principal with a permission on the channel, and answers its token.
async fn principal(http: &Http, kind: &str, id: &str, permission: &str) -> Result<String, Failure> {
    make(http, "/v1/principals", json!({"kind": kind, "id": id})).await?;
    make(http, "/v1/grants", json!({"principal": id, "resource": CHANNEL, "permission": permission})).await?;
    let token = make(http, &format!("/v1/principals/{id}/tokens"), json!({})).await?;
    token.get("token").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Failure::Wrong("a token without its text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{PAYLOAD_BYTES, event};

    #[test]
    fn a_payload_has_the_size_that_floors_and_rows_share() {
        let event: serde_json::Value = serde_json::from_str(&event(&"x".repeat(PAYLOAD_BYTES - 11))).unwrap();
        assert_eq!(event["payload"].to_string().len(), PAYLOAD_BYTES);
    }
}
