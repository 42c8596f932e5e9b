//! Whose certificates are believed.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Whose certificates are believed.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The system's authorities, a private one that was installed there included.
    #[default]
    System,
    /// These authorities only.
    Only(Vec<CertificateDer<'static>>),
}

/// TLS on ring, HTTP/1.1 only.
pub(crate) fn config(trust: Trust) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = || ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let mut roots = RootCertStore::empty();
    let mut config = match trust {
        Trust::System => match builder()?.with_platform_verifier() {
            Ok(builder) => builder.with_no_client_auth(),
            // A machine without authorities still serves; only its calls by https fail, and their attempts say so.
            Err(error) => {
                tracing::warn!(tls.error = %error, "there are no certificate authorities on this machine: hooks to https fail");
                builder()?.with_root_certificates(roots).with_no_client_auth()
            }
        },
        Trust::Only(authorities) => {
            authorities.into_iter().try_for_each(|authority| roots.add(authority))?;
            builder()?.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
