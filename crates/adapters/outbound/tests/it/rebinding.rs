//! Names that resolve to something else the next time.

use hooks::{HookUrl, OutboundClient as _, OutboundError, UrlRefusal};

use crate::support::{Receiver, Told, answer, client, open, post, within};

const NAME: &str = "rebinding.example";

#[tokio::test]
async fn a_name_that_turns_private_between_creation_and_attempt_is_not_dialled() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let mut settings = open(&[]);
    settings.ports = vec![receiver.address.port()];
    let client = client(&settings, Told::new(NAME, &[&["93.184.215.14"], &["127.0.0.1"]]));
    let url = receiver.url(NAME);
    assert_eq!(within(client.check(&HookUrl::parse(&url).unwrap())).await, Ok(()));
    assert_eq!(post(&client, &url).await, Err(OutboundError::Refused(UrlRefusal::Network)));
    assert_eq!(receiver.connections(), 0);
}

/// Had anything looked the name up again after the guard, it would have got the second answer.
#[tokio::test]
async fn what_was_judged_is_what_is_dialled() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let elsewhere = Receiver::at(&format!("127.0.0.2:{}", receiver.address.port()), answer(418, "", "")).await;
    let resolver = Told::new(NAME, &[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client(&open(&[&receiver.entry()]), resolver.clone());
    assert_eq!(post(&client, &receiver.url(NAME)).await.unwrap().status, 204);
    assert_eq!((resolver.asked(), elsewhere.connections()), (1, 0));
    assert_eq!(post(&client, &receiver.url(NAME)).await, Err(OutboundError::Refused(UrlRefusal::Network)), "its connection is still open");
    assert_eq!((receiver.requests().len(), elsewhere.connections()), (1, 0));
}

#[tokio::test]
async fn between_attempts_a_kept_connection_is_used_for_the_same_addresses_only() {
    let first = Receiver::start(answer(200, "", "first")).await;
    let second = Receiver::at(&format!("127.0.0.2:{}", first.address.port()), answer(200, "", "second")).await;
    let answers: [&[&str]; 5] = [&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1"], &["127.0.0.2"]];
    let client = client(&open(&[&first.entry(), &second.entry()]), Told::new(NAME, &answers));
    let mut bodies = Vec::new();
    for _ in answers {
        bodies.push(String::from_utf8(post(&client, &first.url(NAME)).await.unwrap().body.to_vec()).unwrap());
    }
    assert_eq!(bodies, ["first", "first", "second", "first", "second"]);
    assert_eq!((first.connections(), second.connections()), (1, 1), "connections are used again");
}

#[tokio::test]
async fn names_share_no_connection_though_they_share_an_address() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let client = client(&open(&[&receiver.entry()]), Told::new(NAME, &[&["127.0.0.1"]]));
    post(&client, &receiver.url(NAME)).await.unwrap();
    post(&client, &receiver.url("127.0.0.1")).await.unwrap();
    assert_eq!(receiver.connections(), 2);
}
