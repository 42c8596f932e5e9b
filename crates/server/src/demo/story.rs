//! The story: publish, follow, crash, resume, take over.

use std::path::Path;
use std::time::Duration;

use client::{Client, Consumer, ConsumerError, ConsumerOptions, Delivery, fresh_deduplication_key};
use domain::{ChannelRef, ConsumerName, PrincipalId, Seq};
use protocol::admin::{NewChannel, NewGrant, NewPrincipal, NewSpace, NewToken};
use serde_json::json;

use super::Unexpected;
use super::stage::Stage;
use super::teller::Teller;

const CHANNEL: &str = "support/general";
const AGENT: &str = "alpha";
/// How long anything may take that should happen at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells it.
pub(super) async fn tell(teller: &mut Teller, directory: &Path) -> Result<(), Unexpected> {
    teller.step("A server, a channel, and an agent that may read it");
    let stage = Stage::open(directory).await?;
    teller.note(&format!("doorstep serve → {}", stage.url));
    let owner = stage.owner()?;
    let agent = prepare(&stage, &owner).await?;
    let mut consumer = agent.consumer(options()?).connect();
    caught_up(&consumer).await?;
    teller.note("the agent follows as consumer \"default\"; its first connection starts at the head of the log");

    teller.step("Publish: answered when the events are on the disk");
    let published = publish(&owner, &["one", "two", "three", "four", "five"]).await?;
    teller.check("published", published.len(), 5)?;

    teller.step("Follow: in order, and acknowledged by the agent");
    let mut got = receive(&mut consumer, 5).await?;
    teller.check("handed to the agent", seqs(&got), numbers(&published))?;
    let (done, in_hand) = published.split_at(3);
    got.get(2).map(Delivery::ack).ok_or_else(|| Unexpected("no third delivery".to_owned()))?;
    consumer.flush().await.map_err(|error| Unexpected::because("the acknowledgement", &error))?;
    settled(&agent, done.last().copied()).await?;
    teller.note("three are done and acknowledged, two are still in the agent's hands");

    teller.step("Crash: kill -9, the agent and the server");
    got.clear();
    drop(consumer);
    let stage = stage.crash().await?;
    teller.note("the server is killed and started again on the same data");
    let (owner, agent) = (stage.owner()?, again(&stage, &agent_token(directory)?)?);
    let page = owner.list_events(None, Some(1000), None).await.map_err(|error| Unexpected::because("the log", &error))?;
    let held = page.events.iter().filter(|event| event.get().contains("message.created")).count();
    teller.check("events of the channel in the log", held, 5)?;

    teller.step("Resume: what was acknowledged does not come again, what was on its way does");
    let mut first = agent.consumer(options()?).connect();
    let missed = publish(&owner, &["six"]).await?;
    let got = receive(&mut first, 3).await?;
    teller.check("handed to the agent", seqs(&got), numbers(&[in_hand, missed.as_slice()].concat()))?;
    got.last().map(Delivery::ack).ok_or_else(|| Unexpected("no last delivery".to_owned()))?;
    first.flush().await.map_err(|error| Unexpected::because("the acknowledgement", &error))?;

    teller.step("Take over: the newest holder of a consumer wins");
    let mut second = agent.consumer(options()?).connect();
    caught_up(&second).await?;
    let end = next(&mut first).await?;
    teller.check("the first connection ends as replaced", matches!(end, Some(Err(ConsumerError::Replaced))), true)?;
    let last = publish(&owner, &["seven"]).await?;
    let got = receive(&mut second, 1).await?;
    teller.check("handed to the second", seqs(&got), numbers(&last))?;
    got.last().map(Delivery::ack).ok_or_else(|| Unexpected("no last delivery".to_owned()))?;
    second.close().await.map_err(|error| Unexpected::because("the last acknowledgement", &error))?;
    settled(&agent, last.last().copied()).await?;
    let state = agent.consumer_state(&consumer_name()?).await.map_err(|error| Unexpected::because("the consumer's state", &error))?;
    teller.check("left to do", state.lag, 0)?;
    stage.close().await
}

fn consumer_name() -> Result<ConsumerName, Unexpected> {
    ConsumerName::parse(ConsumerName::DEFAULT).map_err(|error| Unexpected::because("a name", &error))
}

fn options() -> Result<ConsumerOptions, Unexpected> {
    Ok(ConsumerOptions::new(consumer_name()?))
}

fn parsed<T: std::str::FromStr<Err: std::error::Error>>(text: &str) -> Result<T, Unexpected> {
    text.parse().map_err(|error| Unexpected::because(text, &error))
}

fn token_path(directory: &Path) -> std::path::PathBuf {
    directory.join("agent-token")
}

fn agent_token(directory: &Path) -> Result<protocol::Secret, Unexpected> {
    let token = std::fs::read_to_string(token_path(directory)).map_err(|error| Unexpected::because("the agent's token", &error))?;
    Ok(protocol::Secret::new(token))
}

fn again(stage: &Stage, token: &protocol::Secret) -> Result<Client, Unexpected> {
    stage.client(token.clone())
}

/// Makes the space, the channel, the agent, its grant and its token.
async fn prepare(stage: &Stage, owner: &Client) -> Result<Client, Unexpected> {
    let failed = |error: client::ClientError| Unexpected::because("the administration", &error);
    let channel: ChannelRef = parsed(CHANNEL)?;
    let (space, agent) = (parsed(channel.space())?, parsed::<PrincipalId>(AGENT)?);
    owner.create_space(&NewSpace { id: parsed(channel.space())? }).await.map_err(failed)?;
    owner.create_channel(&space, &NewChannel { id: parsed(channel.channel())? }).await.map_err(failed)?;
    let principal = NewPrincipal { kind: protocol::admin::PrincipalKind::Agent, id: agent.clone(), display_name: None, role: None };
    owner.create_principal(&principal).await.map_err(failed)?;
    let grant = NewGrant { principal: agent.clone(), resource: parsed(CHANNEL)?, permission: protocol::admin::Permission::Read };
    owner.create_grant(&grant).await.map_err(failed)?;
    let token = owner.create_token(&agent, &NewToken::default()).await.map_err(failed)?.token;
    let Some(token) = token else { return Err(Unexpected("a token without its secret".to_owned())) };
    let path = token_path(stage.directory());
    std::fs::write(path, token.expose()).map_err(|error| Unexpected::because("the agent's token", &error))?;
    stage.client(token)
}

/// Publishes a message for each text in one request.
async fn publish(owner: &Client, texts: &[&str]) -> Result<Vec<Seq>, Unexpected> {
    let event = |text: &&str| {
        let payload = json!({"text": text});
        let key = fresh_deduplication_key().map_err(|error| Unexpected::because("a key", &error))?;
        let body = json!({"type": "message.created", "channel": CHANNEL, "deduplication_key": key, "payload": payload});
        serde_json::from_value::<protocol::EventInput>(body).map_err(|error| Unexpected::because("an event", &error))
    };
    let events = texts.iter().map(event).collect::<Result<Vec<_>, _>>()?;
    let answer = owner.publish(&events).await.map_err(|error| Unexpected::because("publishing", &error))?;
    Ok(answer.events.iter().filter_map(|event| event.seq).collect())
}

async fn next(consumer: &mut Consumer) -> Result<Option<Result<Delivery, ConsumerError>>, Unexpected> {
    tokio::time::timeout(PATIENCE, consumer.next()).await.map_err(|_| Unexpected("nothing came in time".to_owned()))
}

/// The next `count` deliveries.
async fn receive(consumer: &mut Consumer, count: usize) -> Result<Vec<Delivery>, Unexpected> {
    let mut got = Vec::with_capacity(count);
    while got.len() < count {
        match next(consumer).await? {
            Some(Ok(delivery)) => got.push(delivery),
            Some(Err(error)) => return Err(Unexpected::because("following", &error)),
            None => return Err(Unexpected("the stream ended".to_owned())),
        }
    }
    Ok(got)
}

/// Waits until the consumer is connected and has seen everything that was there.
async fn caught_up(consumer: &Consumer) -> Result<(), Unexpected> {
    let mut link = consumer.link();
    let connected = |link: &client::Link| matches!(link, client::Link::Connected(connected) if connected.caught_up);
    match tokio::time::timeout(PATIENCE, link.wait_for(connected)).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(Unexpected("the agent did not connect in time".to_owned())),
    }
}

/// Waits until the server has stored the acknowledgement of `seq`.
async fn settled(agent: &Client, seq: Option<Seq>) -> Result<(), Unexpected> {
    let (name, seq) = (consumer_name()?, seq.unwrap_or_default());
    let stored = async {
        loop {
            let state = agent.consumer_state(&name).await.map_err(|error| Unexpected::because("the consumer's state", &error))?;
            if state.acked_seq >= seq {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, stored)
        .await
        .unwrap_or_else(|_| Err(Unexpected("the acknowledgement was not stored in time".to_owned())))
}

fn seqs(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.seq().get()).collect()
}

fn numbers(seqs: &[Seq]) -> Vec<u64> {
    seqs.iter().copied().map(Seq::get).collect()
}
