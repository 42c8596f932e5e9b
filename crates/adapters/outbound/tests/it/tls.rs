//! Certificates.

use std::sync::Arc;

use doorstep_outbound::{Outbound, Trust};
use hooks::OutboundError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::{Act, Receiver, Told, answer, open, post};

// Made for these tests: an authority, and a receiver whose names are receiver.example and 127.0.0.1. Valid until 2126.
const AUTHORITY: &[u8] = include_bytes!("data/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("data/receiver.pem");
const KEY: &[u8] = include_bytes!("data/receiver.key");

fn acceptor() -> tokio_rustls::TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let config = builder.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY).unwrap()).unwrap();
    Arc::new(config).into()
}

fn client(receiver: &Receiver, authorities: &[&[u8]]) -> Outbound {
    let trust = Trust::Only(authorities.iter().map(|pem| CertificateDer::from_pem_slice(pem).unwrap()).collect());
    Outbound::new(&open(&[&receiver.entry()]), &[], Told::new("receiver.example", &[&["127.0.0.1"]]), trust).unwrap()
}

fn url(receiver: &Receiver, host: &str) -> String {
    format!("https://{host}:{}/", receiver.address.port())
}

#[tokio::test]
async fn a_trusted_certificate_for_the_name_or_address_is_believed() {
    let receiver = Receiver::secure(acceptor(), answer(204, "", "")).await;
    let client = client(&receiver, &[AUTHORITY]);
    for host in ["receiver.example", "RECEIVER.example.", "127.0.0.1"] {
        assert_eq!(post(&client, &url(&receiver, host)).await.unwrap().status, 204, "{host}");
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_no_secure_connection() {
    let receiver = Receiver::secure(acceptor(), answer(204, "", "")).await;
    let client = client(&receiver, &[]);
    assert_eq!(post(&client, &url(&receiver, "receiver.example")).await, Err(OutboundError::Tls));
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_no_secure_connection() {
    let receiver = Receiver::secure(acceptor(), answer(204, "", "")).await;
    let trust = Trust::Only(vec![CertificateDer::from_pem_slice(AUTHORITY).unwrap()]);
    let client = Outbound::new(&open(&[&receiver.entry()]), &[], Told::new("other.example", &[&["127.0.0.1"]]), trust).unwrap();
    assert_eq!(post(&client, &url(&receiver, "other.example")).await, Err(OutboundError::Tls));
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_peer_that_does_not_speak_tls_is_no_secure_connection() {
    for act in [Act::Blurt("HTTP/1.1 400 X\r\n\r\n"), Act::Blurt("")] {
        let receiver = Receiver::start(act).await;
        let client = client(&receiver, &[AUTHORITY]);
        assert_eq!(post(&client, &url(&receiver, "127.0.0.1")).await, Err(OutboundError::Tls));
    }
}

#[tokio::test]
async fn a_client_for_the_systems_authorities_can_always_be_made() {
    assert!(Outbound::new(&open(&[]), &[], Told::new("x", &[]), Trust::System).is_ok());
}
