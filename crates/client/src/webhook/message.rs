//! HTTP Message Signatures (RFC 9421) in the one profile that Doorstep signs: these components, in this order, with these parameters.

use domain::Timestamp;
use ring::digest::{SHA256, digest};

use super::structured::{Value, bytes, dictionary, parameters};
use super::{WebhookHeaders, WebhookKey, WebhookRejection};

const INPUT: &str = "signature-input";
const SIGNATURE: &str = "signature";
const DIGEST: &str = "content-digest";
const DELIVERY: &str = "matm-delivery-id";

/// Signatures that are looked at; one for each key that is valid at the time.
const SIGNATURES_MAX: usize = 16;

/// A request as it was received.
#[derive(Clone, Copy, Debug)]
pub struct WebhookMessage<'a> {
    /// The method.
    pub method: &'a str,
    /// The host that the sender called, in lower case, with the port unless it is the scheme's own. Behind a reverse proxy it is the public
    /// name: take it from the configuration rather than from the request.
    pub authority: &'a str,
    /// The path that the sender called, without the query.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a WebhookHeaders<'a>,
    /// The raw body.
    pub body: &'a [u8],
}

/// What was signed by one of the keys.
#[derive(Debug)]
pub(super) struct Signed<'a> {
    pub(super) id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) created: Timestamp,
    pub(super) expires: Timestamp,
}

/// The parameters of a signature.
struct Parameters<'a> {
    created: i64,
    expires: i64,
    nonce: &'a str,
    key_id: &'a str,
    algorithm: &'a str,
}

/// Whether the request says that it is signed in this way.
pub(super) fn is_signed(headers: &WebhookHeaders<'_>) -> bool {
    headers.has(INPUT)
}

/// Finds a signature that one of the keys has made. Whether it is too old is for the caller to judge.
pub(super) fn verify<'a>(message: &WebhookMessage<'a>, keys: &[WebhookKey]) -> Result<Signed<'a>, WebhookRejection> {
    let headers = message.headers;
    let (content, id) = (headers.one(DIGEST)?, headers.one(DELIVERY)?);
    judge_digest(content, message.body)?;
    let components =
        [("@method", message.method), ("@authority", message.authority), ("@path", message.path), (DIGEST, content), (DELIVERY, id)];
    let signatures = dictionary(headers.one(SIGNATURE)?).ok_or(WebhookRejection::Malformed(SIGNATURE))?;
    let inputs = dictionary(headers.one(INPUT)?).ok_or(WebhookRejection::Malformed(INPUT))?;
    let list = inner_list(&components);
    for (label, input) in inputs.into_iter().take(SIGNATURES_MAX) {
        let Some(read) = input.strip_prefix(list.as_str()).and_then(read_parameters) else { continue };
        let signature = signatures.iter().find(|(other, _)| *other == label).and_then(|(_, text)| bytes(text));
        let Some(signature) = signature else { continue };
        let base = signature_base(&components, input);
        if keys.iter().any(|key| key.fits(read.key_id, read.algorithm) && key.has_signed(base.as_bytes(), &signature)) {
            let at = |seconds: i64| Timestamp::from_micros(seconds.saturating_mul(1_000_000));
            return Ok(Signed { id, nonce: read.nonce, created: at(read.created), expires: at(read.expires) });
        }
    }
    Err(WebhookRejection::Signature)
}

/// What a signature is over (RFC 9421, section 2.5).
fn signature_base(components: &[(&str, &str)], input: &str) -> String {
    let mut lines: Vec<_> = components.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    lines.push(format!("\"@signature-params\": {input}"));
    lines.join("\n")
}

fn inner_list(components: &[(&str, &str)]) -> String {
    let names: Vec<_> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    format!("({})", names.join(" "))
}

/// The parameters of the profile; `None` when one is missing or is another.
fn read_parameters(text: &str) -> Option<Parameters<'_>> {
    let found = parameters(text)?;
    let value = |name: &str| found.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let (integer, text) = (
        |name| match value(name)? {
            Value::Integer(number) => Some(number),
            Value::Text(_) => None,
        },
        |name| match value(name)? {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        },
    );
    let read = Parameters {
        created: integer("created")?,
        expires: integer("expires")?,
        nonce: text("nonce")?,
        key_id: text("keyid")?,
        algorithm: text("alg")?,
    };
    (found.len() == 5).then_some(read)
}

/// Compares the body with its `Content-Digest` (RFC 9530); `sha-256` has to be there.
fn judge_digest(content: &str, body: &[u8]) -> Result<(), WebhookRejection> {
    let members = dictionary(content).ok_or(WebhookRejection::Malformed(DIGEST))?;
    let claimed = members.iter().find(|(name, _)| *name == "sha-256").and_then(|(_, text)| bytes(text));
    let claimed = claimed.ok_or(WebhookRejection::Malformed(DIGEST))?;
    if digest(&SHA256, body).as_ref() == claimed.as_slice() { Ok(()) } else { Err(WebhookRejection::Digest) }
}

/// Compares the body with its `Content-Digest` where there is one.
pub(super) fn judge_digest_if_any(headers: &WebhookHeaders<'_>, body: &[u8]) -> Result<(), WebhookRejection> {
    if headers.has(DIGEST) { judge_digest(headers.one(DIGEST)?, body) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use ring::hmac;

    use super::{judge_digest, signature_base};
    use crate::webhook::{ServerPublicKey, WebhookKey, WebhookRejection, WebhookSecret};

    /// RFC 9421, appendix B.2.5.
    #[test]
    fn the_official_hmac_signature_verifies() {
        let key = STANDARD.decode("uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==").unwrap();
        let key = WebhookKey::from(WebhookSecret { key: hmac::Key::new(hmac::HMAC_SHA256, &key), id: None });
        let components = [("date", "Tue, 20 Apr 2021 02:07:55 GMT"), ("@authority", "example.com"), ("content-type", "application/json")];
        let input = r#"("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#;
        let signature = STANDARD.decode("pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=").unwrap();
        assert!(key.has_signed(signature_base(&components, input).as_bytes(), &signature));
    }

    /// RFC 9421, appendix B.2.6.
    #[test]
    fn the_official_ed25519_signature_verifies() {
        let public = URL_SAFE_NO_PAD.decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs").unwrap();
        let key = WebhookKey::from(ServerPublicKey::new("test-key-ed25519", &public).unwrap());
        let components = [
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("@method", "POST"),
            ("@path", "/foo"),
            ("@authority", "example.com"),
            ("content-type", "application/json"),
            ("content-length", "18"),
        ];
        let input =
            r#"("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519""#;
        let signature = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==";
        let signature = STANDARD.decode(signature).unwrap();
        assert!(key.has_signed(signature_base(&components, input).as_bytes(), &signature));
        assert!(!key.has_signed(signature_base(&components[1..], input).as_bytes(), &signature));
    }

    #[test]
    fn the_digest_is_that_of_rfc_9530() {
        let body = br#"{"hello": "world"}"#;
        assert_eq!(judge_digest("sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", body), Ok(()));
        assert_eq!(judge_digest("sha-512=:AA==:, sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", body), Ok(()));
        assert_eq!(judge_digest("sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", b"{}"), Err(WebhookRejection::Digest));
        for bad in ["", "sha-512=:AA==:", "sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="] {
            assert_eq!(judge_digest(bad, body), Err(WebhookRejection::Malformed("content-digest")), "{bad}");
        }
    }
}
