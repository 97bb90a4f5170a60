//! The TLS server that `tls_server_config` describes.

use super::client_cert::ClientCertificates;
use super::der;
use super::file::{ClientAuth, Pem, PemSource, Tls};
use super::yaml::Problem;
use crate::files;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;

/// What connections are accepted with.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: Arc<ServerConfig>,
    /// The last second in which the certificate is valid, since 1970.
    pub(super) not_after: Option<i64>,
}

/// Reads certificates and key, and puts them together.
pub(super) fn server(tls: &Tls) -> Result<Server, Problem> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: tls.cipher_suites.clone(),
        kx_groups: tls.groups.clone(),
        ..rustls::crypto::ring::default_provider()
    });
    let chain = certificates(&tls.certificate, "cert_file")?;
    let key = private_key(&tls.key)?;
    let not_after = chain.first().and_then(|first| der::not_after(first));
    let verifier = client_verifier(tls, &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&tls.versions)
        .map_err(|error| {
            Problem::new(
                tls.line,
                format!("these versions and cipher suites do not go together: {error}"),
            )
        })?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| {
            Problem::new(
                tls.certificate.line,
                format!("certificate and key cannot be used ({error}); the key has to be the one that the certificate was made for"),
            )
        })?;
    config.ignore_client_order = tls.server_order;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Server {
        config: Arc::new(config),
        not_after,
    })
}

fn client_verifier(
    tls: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
    let kind = tls.client_auth;
    if kind == ClientAuth::NoClientCert {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let authority = match &tls.client_ca {
        Some(pem) if kind.verifies() => Some(authority(pem, kind, provider)?),
        _ => None,
    };
    Ok(Arc::new(ClientCertificates::new(
        kind.requires(),
        authority,
        tls.allowed_names.clone(),
        provider,
    )))
}

fn authority(
    pem: &Pem,
    kind: ClientAuth,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "client_ca_file")? {
        roots
            .add(certificate)
            .map_err(|error| Problem::new(pem.line, format!("client_ca_file: {error}")))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
    if !kind.requires() {
        builder = builder.allow_unauthenticated();
    }
    builder
        .build()
        .map_err(|error| Problem::new(pem.line, format!("client_ca_file: {error}")))
}

fn certificates(pem: &Pem, key: &str) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let text = bytes(pem, key)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(no_pem(pem, key, "certificate", &PemError::NoItemsFound)),
        Err(error) => Err(no_pem(pem, key, "certificate", &error)),
    }
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, Problem> {
    let text = bytes(pem, "key_file")?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        PemError::NoItemsFound if text.windows(9).any(|word| word == b"ENCRYPTED") => Problem::new(
            pem.line,
            format!(
                "{}: the key is encrypted; `openssl pkey -in FILE -out FILE.plain` takes its passphrase off",
                name_of(pem, "key_file")
            ),
        ),
        error => no_pem(pem, "key_file", "private key", &error),
    })
}

fn bytes(pem: &Pem, key: &str) -> Result<Vec<u8>, Problem> {
    match &pem.source {
        PemSource::Inline(text) => Ok(text.clone().into_bytes()),
        PemSource::File(path) => files::read(path).map_err(|error| {
            let what = format!(
                "{key}: cannot read {}: {error}; check the path and who may read it",
                path.display()
            );
            Problem::new(pem.line, what)
        }),
    }
}

fn no_pem(pem: &Pem, key: &str, what: &str, error: &PemError) -> Problem {
    let name = name_of(pem, key);
    let what = match error {
        PemError::NoItemsFound => {
            format!("{name}: there is no {what} in it; it has to be PEM (`-----BEGIN …`)")
        }
        error => format!("{name}: the {what} is not PEM: {error}"),
    };
    Problem::new(pem.line, what)
}

fn name_of(pem: &Pem, key: &str) -> String {
    match &pem.source {
        PemSource::File(path) => format!("{key}: {}", path.display()),
        PemSource::Inline(_) => key.trim_end_matches("_file").to_owned(),
    }
}
