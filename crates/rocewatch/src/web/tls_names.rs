//! Cipher suites and curves by the names that Go, and so every `web.yml`, has for them.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::ring::{ALL_CIPHER_SUITES, kx_group};
use rustls::{CipherSuite, SupportedCipherSuite};

const SUITES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// The suite of this name; an error says which there are.
pub(super) fn cipher_suite(name: &str) -> Result<SupportedCipherSuite, String> {
    let known = SUITES.into_iter().find(|(known, _)| *known == name);
    let suite = known.and_then(|(_, id)| ALL_CIPHER_SUITES.iter().find(|suite| suite.suite() == id));
    suite.copied().ok_or_else(|| {
        let all = SUITES.map(|(name, _)| name).join(", ");
        let name = name.escape_debug();
        format!("cipher suite `{name}` cannot be had, as none without forward secrecy or with CBC can; there are {all}")
    })
}

pub(super) fn suites_of_tls13() -> impl Iterator<Item = SupportedCipherSuite> {
    ALL_CIPHER_SUITES
        .iter()
        .copied()
        .filter(|suite| suite.tls13().is_some())
}

pub(super) fn suites_of_tls12() -> impl Iterator<Item = SupportedCipherSuite> {
    ALL_CIPHER_SUITES
        .iter()
        .copied()
        .filter(|suite| suite.tls13().is_none())
}

/// The curve of this name; an error says which there are.
pub(super) fn group(name: &str) -> Result<&'static dyn SupportedKxGroup, String> {
    match name {
        "X25519" => Ok(kx_group::X25519),
        "CurveP256" => Ok(kx_group::SECP256R1),
        "CurveP384" => Ok(kx_group::SECP384R1),
        _ => Err(format!(
            "curve `{}` cannot be had; there are X25519, CurveP256, CurveP384",
            name.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_its_name() {
        let mut found = SUITES.map(|(name, _)| cipher_suite(name).expect("there is one").suite());
        let mut all: Vec<_> = ALL_CIPHER_SUITES
            .iter()
            .map(SupportedCipherSuite::suite)
            .collect();
        found.sort_by_key(|suite| u16::from(*suite));
        all.sort_by_key(|suite| u16::from(*suite));
        assert_eq!(found.as_slice(), all);
    }

    #[test]
    fn what_there_is_not_names_what_there_is() {
        let text = cipher_suite("TLS_RSA_WITH_AES_128_CBC_SHA").unwrap_err();
        assert!(text.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{text}");
        assert!(group("CurveP521").unwrap_err().contains("CurveP384"));
    }
}
