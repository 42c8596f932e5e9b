//! The usual cast: a space, two channels, an agent, a person, an app and a publisher (seed 004, "Integration").

use serde_json::json;

use crate::http::Http;

/// Everybody that most tests need. `alpha` may read `support/general` and `support/github`, not `marketing/plans`.
#[derive(Debug, Clone)]
pub struct Cast {
    /// The owner.
    pub owner: Http,
    /// The agent `alpha`.
    pub alpha: Http,
    /// The app `producer`, which may post everywhere.
    pub producer: Http,
    /// The person `sam`, who may read the space `support`.
    pub sam: Http,
    /// The grant by which `alpha` reads `support/general`.
    pub alpha_general_grant: String,
}

/// Creates the cast on a fresh server.
///
/// # Panics
/// When the server refuses any of it.
pub async fn cast(owner: &Http) -> Cast {
    for (space, channel) in [("support", "general"), ("support", "github"), ("marketing", "plans")] {
        owner.post("/v1/spaces", &json!({"id": space})).await;
        owner.post(&format!("/v1/spaces/{space}/channels"), &json!({"id": channel})).await.expect(201);
    }
    let alpha = principal(owner, "agent", "alpha").await;
    let producer = principal(owner, "app", "producer").await;
    let sam = principal(owner, "person", "sam").await;
    let alpha_general_grant = grant(owner, "alpha", "support/general", "read").await;
    grant(owner, "alpha", "support/github", "read").await;
    grant(owner, "producer", "*", "post").await;
    grant(owner, "sam", "support", "read").await;
    Cast { owner: owner.clone(), alpha, producer, sam, alpha_general_grant }
}

/// Creates a principal with a token.
pub(crate) async fn principal(owner: &Http, kind: &str, id: &str) -> Http {
    owner.post("/v1/principals", &json!({"kind": kind, "id": id})).await.expect(201);
    let token = owner.post(&format!("/v1/principals/{id}/tokens"), &json!({})).await.expect(201);
    owner.with_token(token["token"].as_str().expect("a token"))
}

async fn grant(owner: &Http, principal: &str, resource: &str, permission: &str) -> String {
    let body = json!({"principal": principal, "resource": resource, "permission": permission});
    owner.post("/v1/grants", &body).await.expect(201)["grant_id"].as_str().expect("a grant id").to_owned()
}

impl Cast {
    /// Creates another principal with a token.
    pub async fn add(&self, kind: &str, id: &str) -> Http {
        principal(&self.owner, kind, id).await
    }

    /// Grants something; answers the grant's id.
    pub async fn grant(&self, principal: &str, resource: &str, permission: &str) -> String {
        grant(&self.owner, principal, resource, permission).await
    }

    /// Publishes one message to a channel and answers its seq.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn say(&self, channel: &str, text: &str) -> u64 {
        let event = json!({"type": "message.created", "channel": channel, "payload": {"text": text}});
        self.producer.post("/v1/events", &event).await.expect(201)["events"][0]["seq"].as_u64().expect("a seq")
    }

    /// Publishes `count` messages to a channel in one request and answers their seqs.
    ///
    /// # Panics
    /// When they are refused.
    pub async fn say_many(&self, channel: &str, count: usize) -> Vec<u64> {
        let events: Vec<_> =
            (0..count).map(|n| json!({"type": "message.created", "channel": channel, "payload": {"text": format!("{n}")}})).collect();
        let answer = self.producer.post("/v1/events", &json!({"events": events})).await.expect(201);
        answer["events"].as_array().expect("events").iter().map(|event| event["seq"].as_u64().expect("a seq")).collect()
    }
}
