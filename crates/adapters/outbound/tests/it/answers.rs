//! What receivers answer, in good and in bad faith.

use std::time::{Duration, Instant};

use hooks::{OutboundClient as _, OutboundError};
use tokio::net::TcpListener;

use crate::support::{Act, Receiver, Told, answer, client, open, post, request, within};

/// What comes of a call to such a receiver within 300 ms.
async fn outcome(act: Act) -> Result<hooks::OutboundAnswer, OutboundError> {
    let receiver = Receiver::start(act).await;
    let client = client(&open(&[&receiver.entry()]), Told::new("x", &[]));
    let mut request = request(&receiver.url("127.0.0.1"));
    request.timeout = Duration::from_millis(300);
    let begun = Instant::now();
    let outcome = within(client.post(request)).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    outcome
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = Receiver::start(answer(204, "", "")).await;
    for status in 300..=308 {
        let location = format!("location: http://{}/\r\n", elsewhere.address);
        let receiver = Receiver::start(answer(status, &location, "")).await;
        let client = client(&open(&[&receiver.entry(), &elsewhere.entry()]), Told::new("x", &[]));
        assert_eq!(post(&client, &receiver.url("127.0.0.1")).await.unwrap().status, status);
        assert_eq!(receiver.requests().len(), 1);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn statuses_and_retry_after_are_handed_on() {
    for (status, header, expected) in
        [(200, "", None), (429, "retry-after: 7\r\n", Some("7")), (503, "Retry-After: x\r\n", Some("x")), (410, "", None)]
    {
        let answer = outcome(answer(status, header, "body")).await.unwrap();
        assert_eq!((answer.status, answer.retry_after.as_deref(), &answer.body[..]), (status, expected, b"body".as_slice()));
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_the_bound_and_an_endless_one_is_left() {
    let long = "x".repeat(100_000);
    assert_eq!(outcome(answer(200, "", &long)).await.unwrap().body.len(), 4096);
    let exact = "x".repeat(4096);
    assert_eq!(outcome(answer(200, "", &exact)).await.unwrap().body.len(), 4096);
    let endless = Act::Drip("HTTP/1.1 200 X\r\n\r\n", &[b'x'; 4096], Duration::ZERO);
    assert_eq!(outcome(endless).await.unwrap().body.len(), 4096);
    let receiver = Receiver::start(answer(200, "", &long)).await;
    let client = client(&open(&[&receiver.entry()]), Told::new("x", &[]));
    let mut request = request(&receiver.url("127.0.0.1"));
    request.answer_max = 10;
    assert_eq!(within(client.post(request)).await.unwrap().body.len(), 10);
}

#[tokio::test]
async fn whoever_is_slow_at_any_stage_runs_out_of_time() {
    let pause = Duration::from_millis(20);
    for act in [
        Act::Hang,
        Act::Drip("HTTP/1.1 200 X\r\nx-slow: ", b"x", pause),
        Act::Drip("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n", b"x", pause),
        Act::Drip("HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n", pause),
        Act::Drip("", b"HTTP/1.1 100 Continue\r\n\r\n", pause),
        Act::Drip("HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n", pause),
    ] {
        let told = format!("{act:?}");
        assert_eq!(outcome(act).await, Err(OutboundError::Timeout), "{told}");
    }
}

#[tokio::test]
async fn what_is_no_http_or_breaks_off_is_told_as_such() {
    for act in [
        Act::Blurt("SSH-2.0-OpenSSH_9.6\r\n"),
        Act::Blurt(""),
        Act::Blurt("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nx"),
        Act::Blurt("HTTP/1.1 200 X\r\ncontent-length: -1\r\n\r\n"),
        Act::Blurt("220 smtp.example ESMTP\r\n"),
        Act::Drip("HTTP/1.1 200 X\r\n", "x-more: header\r\n".repeat(1_000).leak().as_bytes(), Duration::ZERO),
    ] {
        let told = format!("{act:?}");
        assert_eq!(outcome(act).await, Err(OutboundError::Protocol), "{told}");
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_no_connection() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = client(&open(&[&free.to_string()]), Told::new("x", &[]));
    assert_eq!(post(&client, &format!("http://{free}/")).await, Err(OutboundError::Connect));
}

#[tokio::test]
async fn an_upgrade_is_an_answer_like_any_other() {
    let upgrade = Act::Answer("HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n".to_owned());
    let outcome = outcome(upgrade).await;
    assert!(matches!(&outcome, Ok(answer) if answer.status == 101) || outcome == Err(OutboundError::Protocol), "{outcome:?}");
}

#[tokio::test]
async fn nothing_of_a_call_shows_its_url() {
    let shown = format!("{:?}", request("http://agent.example/CANARY?key=CANARY").url);
    assert!(!shown.contains("CANARY"), "{shown}");
    for error in [OutboundError::Dns, OutboundError::Refused(hooks::UrlRefusal::Network), OutboundError::Connect] {
        assert!(!error.to_string().contains("127."), "{error}");
    }
}
