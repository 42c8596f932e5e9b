//! `hook`: rings that are sent and signed, and what publishing costs beside receivers that never answer.

mod receiver;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Http;

use super::{RowName, closed_loop, unzip};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::ground::{Ground, PAYLOAD_BYTES, Server};
use crate::report::{Line, Target, Unit};
use crate::wire::{HttpConnection, Request};
use receiver::{Manner, Receiver};

/// Tenants whose agents are rung.
const TENANTS: usize = 8;
/// Hooks of the agent whose receivers are dead: as many as one may have.
const DEAD_HOOKS: usize = 5;
/// Items in a request that only gives work.
const FILL: usize = 500;
/// Connections that publish beside dead receivers.
const PUBLISHERS: usize = 8;
/// More rings than can be sent in a second.
const MOST_PER_SECOND: usize = 20_000;
/// What publishing may lose because of dead receivers.
const UNAFFECTED: f64 = 0.95;
/// What is to be reached.
const RINGS: f64 = 3_000.0;

pub(super) fn run(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let mut lines = rings(bench, ground)?;
    lines.extend(beside_dead(bench, ground)?);
    Ok(lines)
}

/// Rings to one receiver that answers at once.
fn rings(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let receiver = bench.measure("a receiver", Receiver::listen(Manner::Answers))?;
    // None of them collapses: every ring counts.
    let server = serve(ground, &receiver, &[("hooks.outstanding_max", "10000000")])?;
    let tenants = bench.measure("making tenants", tenants(bench, ground, &server, TENANTS))?;
    let rates = bench.each_round(RowName::Hook, |_| bench.measure("ringing", one_round(bench.window, &server, &tenants, &receiver)))?;
    server.stop()?;
    Ok(vec![Line::new(RowName::Hook, "rings, 8 tenants, one receiver", Unit::PerSecond, rates).target(Target::AtLeast(RINGS, ""))])
}

/// Publishing for an agent whose hooks lead to a receiver that never answers, beside the same without hooks.
fn beside_dead(bench: &Bench, ground: &Ground) -> Result<Vec<Line>, Failure> {
    let receiver = bench.measure("a receiver", Receiver::listen(Manner::Hangs))?;
    let server = serve(ground, &receiver, &[])?;
    let tenants = bench.measure("making a tenant", tenants(bench, ground, &server, 1))?;
    let tenant = tenants.first().ok_or_else(|| Failure::Wrong("no tenant".to_owned()))?;
    let request = tenant.give_request(1);
    let publish = || async { Ok(closed_loop(server.address, request.clone(), PUBLISHERS, bench.window).await?.rate) };
    let rounds = bench.each_round(RowName::Hook, |_| {
        let without = bench.measure("publishing without hooks", publish())?;
        let mut hooks = Vec::new();
        for _ in 0..DEAD_HOOKS {
            hooks.push(bench.measure("making a hook", tenant.hook(&receiver))?);
        }
        let with = bench.measure("publishing beside dead hooks", publish())?;
        for hook in hooks {
            bench.measure("removing a hook", tenant.remove(&hook))?;
        }
        Ok((without, with))
    })?;
    server.stop()?;
    let (without, with) = unzip(rounds);
    let line = Line::new(RowName::Hook, "events published, all hooks dead", Unit::PerSecond, with);
    Ok(vec![line.over("the same without hooks", without).target(Target::OfFloor(UNAFFECTED))])
}

/// A server that may call the receiver, with these keys beside.
fn serve(ground: &Ground, receiver: &Receiver, more: &[(&str, &str)]) -> Result<Server, Failure> {
    let address = receiver.address.to_string();
    ground.serve(&[&[("hooks.allow_http", "true"), ("hooks.allow_networks", address.as_str())], more].concat())
}

async fn one_round(window: Duration, server: &Server, tenants: &[Tenant], receiver: &Receiver) -> Result<f64, Failure> {
    let mut hooks = Vec::new();
    for tenant in tenants {
        hooks.push((tenant, tenant.hook(receiver).await?));
    }
    let before = receiver.rings();
    let seconds = usize::try_from(window.as_secs()).unwrap_or_default() + 2;
    let batches = (MOST_PER_SECOND * seconds).div_ceil(tenants.len() * FILL);
    for tenant in tenants {
        tenant.give(server.address, batches).await?;
    }
    let (begin, begun) = (Instant::now(), receiver.rings());
    tokio::time::sleep(window).await;
    let (rung, took) = (receiver.rings() - begun, begin.elapsed());
    let outstanding = batches * FILL * tenants.len() - (receiver.rings() - before);
    for (tenant, hook) in hooks {
        tenant.remove(&hook).await?;
    }
    if receiver.has_seen_unsigned() {
        return Err(Failure::Wrong("a ring came without a signature".to_owned()));
    }
    if outstanding == 0 {
        return Err(Failure::Wrong("all rings were sent before the end".to_owned()));
    }
    Ok(rung as f64 / took.as_secs_f64())
}

/// A tenant with one agent.
struct Tenant {
    http: Http,
    token: String,
}

async fn tenants(bench: &Bench, ground: &Ground, server: &Server, count: usize) -> Result<Vec<Tenant>, Failure> {
    let operator = Http::new(&server.process.url, &ground.owner);
    let mut tenants = Vec::new();
    for number in 0..count {
        let id = format!("rung-{}-{count}-{number}", bench.factor.unwrap_or_default());
        let made = expect(&operator, "/v1/tenants", &json!({"id": id})).await?;
        let token = text(&made, "token")?;
        let http = Http::new(&server.process.url, &token);
        expect(&http, "/v1/principals", &json!({"kind": "agent", "id": "rung"})).await?;
        tenants.push(Tenant { http, token });
    }
    Ok(tenants)
}

impl Tenant {
    /// A request that leaves `count` items for the agent.
    fn give_request(&self, count: usize) -> Vec<u8> {
        let text = "x".repeat(PAYLOAD_BYTES - r#"{"text":""}"#.len());
        let event = format!(r#"{{"type":"bench.task","recipients":[{{"kind":"agent","id":"rung"}}],"payload":{{"text":"{text}"}}}}"#);
        let body = if count == 1 { event } else { format!(r#"{{"events":[{}]}}"#, vec![event; count].join(",")) };
        Request::new("POST", "/v1/events").bearer(&self.token).json(body).render()
    }

    async fn give(&self, address: SocketAddr, batches: usize) -> Result<(), Failure> {
        let mut connection = HttpConnection::connect(address).await?;
        let full = self.give_request(FILL);
        for _ in 0..batches {
            connection.call(&full).await?.success()?;
        }
        Ok(())
    }

    /// Makes a hook of the agent; answers its id.
    async fn hook(&self, receiver: &Receiver) -> Result<String, Failure> {
        let hook = json!({"agent": "rung", "url": format!("http://{}/rings", receiver.address)});
        text(&expect(&self.http, "/v1/notify-hooks", &hook).await?, "id")
    }

    async fn remove(&self, hook: &str) -> Result<(), Failure> {
        let path = format!("/v1/notify-hooks/{hook}");
        let status = self.http.delete(&path).await.status;
        if status == 204 { Ok(()) } else { Err(Failure::Refused { request: format!("DELETE {path}"), status, body: String::new() }) }
    }
}

async fn expect(http: &Http, path: &str, body: &Value) -> Result<Value, Failure> {
    let answer = http.post(path, body).await;
    if (200..300).contains(&answer.status) {
        return Ok(answer.json());
    }
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Err(Failure::Refused { request: format!("POST {path}"), status: answer.status, body })
}

fn text(answer: &Value, member: &str) -> Result<String, Failure> {
    answer.get(member).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Failure::Wrong(format!("an answer without {member}")))
}
