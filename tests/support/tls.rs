//! Certificates made for a test, and a client that speaks TLS with them.

#![allow(dead_code)] // each test program uses a part
#![allow(unreachable_pub)] // a module of several test programs
#![allow(clippy::disallowed_methods)] // tests write files

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Identity {
    /// Writes `NAME.crt` and `NAME.key` into a folder, each at one stroke, as a certificate manager does.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let certificate = folder.join(format!("{name}.crt"));
        let key = folder.join(format!("{name}.key"));
        replace(&certificate, &self.certificate);
        replace(&key, &self.key);
        (certificate, key)
    }
}

/// Puts a new content in a file's place.
pub(crate) fn replace(file: &Path, content: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, content).expect("a file can be written");
    std::fs::rename(new, file).expect("a file can be replaced");
}

/// Signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key can be made");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate can be signed"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names, which is valid.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_until(names, 2099)
    }

    /// A certificate for these names that ends with the beginning of this year.
    pub(crate) fn issue_until(&self, names: &[&str], year: i32) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("these are names");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params
            .signed_by(&key, &self.0)
            .expect("a certificate can be signed");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// What a client speaks TLS with.
pub(crate) struct Client(Arc<ClientConfig>);

impl Client {
    /// Trusts `authority`, and shows `identity` where it is asked for one.
    pub(crate) fn new(authority: &Authority, identity: Option<&Identity>) -> Self {
        Self::with_versions(authority, identity, rustls::ALL_VERSIONS)
    }

    pub(crate) fn with_versions(
        authority: &Authority,
        identity: Option<&Identity>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let pem = authority.pem();
        roots
            .add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is PEM"))
            .expect("it is a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("these versions are there")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("it is PEM")],
                    PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("it is PEM"),
                )
                .expect("key and certificate go together"),
        };
        Self(Arc::new(config))
    }

    /// `GET path` on a connection of its own: the head and the body in one text, or why there is none.
    pub(crate) fn get(&self, address: SocketAddr, path: &str, headers: &[&str]) -> Result<String, String> {
        let name = ServerName::try_from("localhost").expect("it is a name");
        let client = ClientConnection::new(Arc::clone(&self.0), name).map_err(|error| error.to_string())?;
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout can be set");
        let mut stream = StreamOwned::new(client, socket);
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for header in headers {
            request.push_str(header);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        stream
            .write_all(request.as_bytes())
            .map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        stream
            .read_to_end(&mut answer)
            .map_err(|error| error.to_string())?;
        String::from_utf8(answer).map_err(|error| error.to_string())
    }
}
