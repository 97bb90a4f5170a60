//! Which clients may connect, by their certificates.

use super::der;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// The policies that Go's `crypto/tls` has, and the names that exporter-toolkit adds to them.
#[derive(Debug)]
pub(super) struct ClientCertificates {
    required: bool,
    /// Who vouches for certificates; without it any is taken, if only its owner holds the key.
    authority: Option<Arc<dyn ClientCertVerifier>>,
    /// A certificate has to be for one of these.
    names: Option<Vec<String>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertificates {
    pub(super) fn new(
        required: bool,
        authority: Option<Arc<dyn ClientCertVerifier>>,
        names: Option<Vec<String>>,
        provider: &CryptoProvider,
    ) -> Self {
        Self {
            required,
            authority,
            names,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    fn check_names(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let Some(allowed) = &self.names else { return Ok(()) };
        if der::alt_names(certificate)
            .iter()
            .any(|name| allowed.contains(name))
        {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

impl ClientCertVerifier for ClientCertificates {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority
            .as_ref()
            .map_or(&[], |authority| authority.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(authority) = &self.authority {
            authority.verify_client_cert(end_entity, intermediates, now)?;
        }
        self.check_names(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
