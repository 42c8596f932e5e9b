//! Spellings of addresses that must not be reached, at creation (`check`) and at an attempt (`post`).

use hooks::{HookUrl, OutboundClient as _, OutboundError, UrlRefusal};

use crate::support::{Receiver, Told, answer, client, open, post, request, within};

/// URL, whether it may be called, why.
const LIST: &str = include_str!("data/ssrf-urls.tsv");

fn entries() -> impl Iterator<Item = (&'static str, bool)> {
    LIST.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let mut fields = line.split('\t');
        let (url, expected) = (fields.next().unwrap(), fields.next().unwrap());
        assert!(matches!(expected, "refuse" | "allow"), "{line}");
        (url, expected == "allow")
    })
}

/// `example.com` is public, and names of this machine are what they are everywhere.
fn resolver() -> std::sync::Arc<Told> {
    Told::new("example.com", &[&["93.184.215.14"]])
}

#[tokio::test]
async fn every_url_of_the_list_is_judged_as_listed_also_where_http_is_allowed() {
    assert!(entries().count() > 40);
    for settings in [open(&[]), hooks::Settings::default()] {
        let client = client(&settings, resolver());
        for (url, is_allowed) in entries() {
            let judged = match HookUrl::parse(url) {
                Ok(url) => within(client.check(&url)).await,
                Err(refusal) => Err(refusal),
            };
            assert_eq!(judged.is_ok(), is_allowed, "{url}: {judged:?}");
        }
    }
}

#[tokio::test]
async fn no_refused_url_of_the_list_is_called() {
    let client = client(&open(&[]), resolver());
    for (url, is_allowed) in entries() {
        if let (Ok(_), false) = (HookUrl::parse(url), is_allowed) {
            let outcome = post(&client, url).await;
            assert!(matches!(outcome, Err(OutboundError::Refused(_) | OutboundError::Dns)), "{url}: {outcome:?}");
        }
    }
}

/// The system's resolver must not be what keeps a listener on loopback from being reached by another spelling.
#[tokio::test]
async fn no_spelling_reaches_a_listener_on_loopback() {
    let receiver = Receiver::start(answer(204, "", "")).await;
    let port = receiver.address.port();
    let mut settings = open(&[]);
    settings.ports = vec![port];
    let client = client(&settings, std::sync::Arc::new(doorstep_outbound::SystemResolver::default()));
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "127.255.255.254",
    ] {
        let url = format!("http://{host}:{port}/");
        if HookUrl::parse(&url).is_ok() {
            let outcome = post(&client, &url).await;
            assert!(matches!(outcome, Err(OutboundError::Refused(UrlRefusal::Network | UrlRefusal::Malformed))), "{url}: {outcome:?}");
        }
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn only_listed_ports_are_dialled_and_443_and_8443_by_default() {
    for (allow_http, ports, url, expected) in [
        (false, vec![], "https://example.com/", Ok(())),
        (false, vec![], "https://example.com:8443/", Ok(())),
        (false, vec![], "https://example.com:80/", Err(UrlRefusal::Port)),
        (true, vec![], "http://example.com/", Ok(())),
        (true, vec![], "http://example.com:8080/", Err(UrlRefusal::Port)),
        (true, vec![8080], "http://example.com:8080/", Ok(())),
        (true, vec![8080], "https://example.com/", Err(UrlRefusal::Port)),
        (true, vec![], "http://example.com:22/", Err(UrlRefusal::Port)),
        (true, vec![], "http://example.com:0/", Err(UrlRefusal::Port)),
        (false, vec![], "http://example.com/", Err(UrlRefusal::Scheme)),
    ] {
        let settings = hooks::Settings { allow_http, ports, ..hooks::Settings::default() };
        let judged = within(client(&settings, resolver()).check(&HookUrl::parse(url).unwrap())).await;
        assert_eq!(judged, expected, "{url} {settings:?}");
    }
}

#[tokio::test]
async fn the_list_of_hosts_is_asked_before_any_name_is_looked_up() {
    let settings = hooks::Settings { url_allow_list: vec!["*.agents.example".to_owned()], ..hooks::Settings::default() };
    let resolver = Told::new("a.agents.example", &[&["93.184.215.14"]]);
    let client = client(&settings, resolver.clone());
    assert_eq!(within(client.check(&HookUrl::parse("https://example.com/").unwrap())).await, Err(UrlRefusal::NotListed));
    assert_eq!(within(client.check(&HookUrl::parse("https://8.8.8.8/").unwrap())).await, Err(UrlRefusal::NotListed));
    assert_eq!(resolver.asked(), 0);
    assert_eq!(within(client.check(&HookUrl::parse("https://a.agents.example/").unwrap())).await, Ok(()));
}

#[tokio::test]
async fn a_name_that_does_not_answer_is_refused_in_time() {
    let settings = hooks::Settings { attempt_timeout: std::time::Duration::from_millis(50), ..hooks::Settings::default() };
    let client = client(&settings, std::sync::Arc::new(crate::support::Silent));
    assert_eq!(within(client.check(&HookUrl::parse("https://example.com/").unwrap())).await, Err(UrlRefusal::Unresolvable));
    let mut request = request("https://example.com/");
    request.timeout = std::time::Duration::from_millis(50);
    assert_eq!(within(client.post(request)).await, Err(OutboundError::Timeout));
}

#[tokio::test]
async fn a_name_without_addresses_is_a_matter_of_dns() {
    let client = client(&hooks::Settings::default(), Told::new("empty.example", &[&[]]));
    for url in ["https://empty.example/", "https://missing.example/"] {
        assert_eq!(within(client.check(&HookUrl::parse(url).unwrap())).await, Err(UrlRefusal::Unresolvable));
        assert_eq!(post(&client, url).await, Err(OutboundError::Dns));
    }
}
