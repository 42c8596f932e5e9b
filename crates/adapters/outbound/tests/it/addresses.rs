//! What an operator opens, and what is dialled then.

use hooks::{HookUrl, OutboundClient as _, OutboundError, UrlRefusal};

use crate::support::{Receiver, Told, answer, client, open, post, within};

const NAME: &str = "agent.example";

#[tokio::test]
async fn an_exact_entry_opens_its_address_and_port_by_name_and_by_address() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let resolver = Told::new(NAME, &[&["127.0.0.1"]]);
    let client = client(&open(&[&receiver.entry()]), resolver.clone());
    assert_eq!(post(&client, &receiver.url("127.0.0.1")).await.unwrap().status, 204);
    assert_eq!(resolver.asked(), 0, "an address needs no resolver");
    assert_eq!(post(&client, &receiver.url(NAME)).await.unwrap().status, 204);
    assert_eq!(resolver.asked(), 1, "nothing but the guard has asked, and it once");
    let requests = receiver.requests();
    assert!(requests[0].starts_with("POST /hook?key=k HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[1].contains(&format!("\r\nhost: {NAME}:{}\r\n", receiver.address.port())), "{}", requests[1]);
    assert!(
        requests[1].contains("\r\nwebhook-id: msg_1\r\n") && requests[1].ends_with("\r\n\r\n{\"type\":\"todo.ready\"}"),
        "{}",
        requests[1]
    );
}

#[tokio::test]
async fn without_it_nothing_on_loopback_is_dialled_whatever_else_is_open() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let other = format!("127.0.0.1:{}", receiver.address.port() ^ 1);
    let mut settings = open(&["127.0.0.0/8", "0.0.0.0/0", "::/0", &other]);
    settings.ports = vec![receiver.address.port()];
    let client = client(&settings, Told::new(NAME, &[&["127.0.0.1"]]));
    for url in [receiver.url("127.0.0.1"), receiver.url(NAME), receiver.url("[::ffff:7f00:1]")] {
        assert_eq!(post(&client, &url).await, Err(OutboundError::Refused(UrlRefusal::Network)), "{url}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_with_one_bad_address_among_good_ones_is_not_dialled() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    for bad in ["10.0.0.1", "169.254.169.254", "::1", "fe80::1", "127.0.0.2", "::ffff:192.168.0.1", "0.0.0.0"] {
        for answers in [["127.0.0.1", bad], [bad, "127.0.0.1"]] {
            let client = client(&open(&[&receiver.entry()]), Told::new(NAME, &[&answers]));
            assert_eq!(post(&client, &receiver.url(NAME)).await, Err(OutboundError::Refused(UrlRefusal::Network)), "{answers:?}");
        }
    }
    let public_and_private = client(&open(&[]), Told::new(NAME, &[&["93.184.215.14", "2606:4700::1", "10.0.0.1"]]));
    assert_eq!(within(public_and_private.check(&HookUrl::parse("https://agent.example/").unwrap())).await, Err(UrlRefusal::Network));
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn an_exact_entry_opens_its_port_for_no_other_address() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let client = client(&open(&[&receiver.entry()]), Told::new(NAME, &[&["127.0.0.1", "93.184.215.14"]]));
    assert_eq!(post(&client, &receiver.url(NAME)).await, Err(OutboundError::Refused(UrlRefusal::Port)));
}

#[tokio::test]
async fn a_private_network_opens_no_port_that_is_not_listed() {
    let client = client(&open(&["192.168.0.0/16"]), Told::new(NAME, &[&["192.168.1.9"]]));
    let check = async |url: &str| within(client.check(&HookUrl::parse(url).unwrap())).await;
    assert_eq!(check("http://agent.example/").await, Ok(()));
    assert_eq!(check("https://192.168.1.9:8443/").await, Ok(()));
    assert_eq!(check("http://agent.example:9000/").await, Err(UrlRefusal::Port));
    assert_eq!(check("http://192.169.1.9/").await, Ok(()), "public");
    assert_eq!(check("http://10.0.0.1/").await, Err(UrlRefusal::Network));
}

#[tokio::test]
async fn this_servers_own_listeners_are_not_called_through_an_open_network() {
    let settings = open(&["192.168.0.0/16"]);
    let listeners = ["192.168.1.10:443".parse().unwrap()];
    let resolver = Told::new(NAME, &[&["192.168.1.10"]]);
    let client = doorstep_outbound::Outbound::new(&settings, &listeners, resolver, doorstep_outbound::Trust::Only(Vec::new())).unwrap();
    for url in ["https://agent.example/", "https://192.168.1.10/"] {
        assert_eq!(within(client.check(&HookUrl::parse(url).unwrap())).await, Err(UrlRefusal::Network), "{url}");
    }
    assert_eq!(within(client.check(&HookUrl::parse("https://192.168.1.11/").unwrap())).await, Ok(()));
}

#[tokio::test]
async fn a_name_with_several_good_addresses_is_reached_by_whichever_answers() {
    let receiver = Receiver::at("127.0.0.2:0", answer(204, "", "")).await;
    let silent = format!("127.0.0.1:{}", receiver.address.port());
    let client = client(&open(&[&receiver.entry(), &silent]), Told::new(NAME, &[&["127.0.0.1", "127.0.0.2"]]));
    assert_eq!(post(&client, &receiver.url(NAME)).await.unwrap().status, 204);
}

#[tokio::test]
async fn a_host_by_another_spelling_is_told_and_reached_as_what_was_judged() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let client = client(&open(&[&receiver.entry()]), Told::new(NAME, &[&["127.0.0.1"]]));
    for host in ["Agent.Example.", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
        assert_eq!(post(&client, &receiver.url(host)).await.unwrap().status, 204, "{host}");
    }
    let port = receiver.address.port();
    let hosts: Vec<_> =
        receiver.requests().iter().map(|request| request.lines().find(|line| line.starts_with("host")).unwrap().to_owned()).collect();
    assert_eq!(hosts[0], format!("host: agent.example:{port}"));
    assert!(hosts[1..].iter().all(|host| *host == format!("host: 127.0.0.1:{port}")), "{hosts:?}");
}
