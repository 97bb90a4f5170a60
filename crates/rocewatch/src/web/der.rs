//! The little of X.509 (RFC 5280) that the TLS library keeps to itself: for whom a certificate is, and until when.

use std::net::{Ipv4Addr, Ipv6Addr};

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// `[0] EXPLICIT Version` of a `TBSCertificate`.
const VERSION: u8 = 0xa0;
/// `[3] EXPLICIT Extensions` of a `TBSCertificate`.
const EXTENSIONS: u8 = 0xa3;
/// `id-ce-subjectAltName`, 2.5.29.17.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];
/// `rfc822Name`, `dNSName`, `uniformResourceIdentifier` and `iPAddress` of a `GeneralName`.
const EMAIL: u8 = 0x81;
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
const IP: u8 = 0x87;

/// A row of DER values, one behind the other.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next value's tag and content; `None` at the end, and for what is not DER.
    fn next(&mut self) -> Option<(u8, Der<'a>)> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, Der(content)))
    }

    /// The content of the next value if it has this tag; another is left where it is.
    fn take(&mut self, wanted: u8) -> Option<Der<'a>> {
        let mut rest = *self;
        let (tag, content) = rest.next()?;
        (tag == wanted).then(|| {
            *self = rest;
            content
        })
    }
}

/// What is behind the serial number and the signature algorithm of a certificate: issuer, validity, subject, ….
fn from_issuer(certificate: &[u8]) -> Option<Der<'_>> {
    let mut fields = Der(certificate).take(SEQUENCE)?.take(SEQUENCE)?;
    let _ = fields.take(VERSION);
    fields.take(INTEGER)?;
    fields.take(SEQUENCE)?;
    Some(fields)
}

/// The DNS names, e-mail addresses, IP addresses and URIs that a certificate is for.
pub(crate) fn alt_names(certificate: &[u8]) -> Vec<String> {
    alt_name_values(certificate).unwrap_or_default()
}

fn alt_name_values(certificate: &[u8]) -> Option<Vec<String>> {
    let mut fields = from_issuer(certificate)?;
    let mut extensions = loop {
        if let (EXTENSIONS, mut content) = fields.next()? {
            break content.take(SEQUENCE)?;
        }
    };
    while let Some(mut extension) = extensions.take(SEQUENCE) {
        if extension.take(OBJECT_IDENTIFIER)?.0 != SUBJECT_ALT_NAME {
            continue;
        }
        // A flag may stand before the value: whether the extension is critical.
        let mut names = loop {
            if let (OCTET_STRING, mut value) = extension.next()? {
                break value.take(SEQUENCE)?;
            }
        };
        let mut values = Vec::new();
        while let Some((tag, content)) = names.next() {
            values.extend(general_name(tag, content.0));
        }
        return Some(values);
    }
    None
}

fn general_name(tag: u8, content: &[u8]) -> Option<String> {
    match tag {
        EMAIL | DNS | URI if content.is_ascii() => String::from_utf8(content.to_vec()).ok(),
        IP => match content.len() {
            4 => <[u8; 4]>::try_from(content)
                .ok()
                .map(|octets| Ipv4Addr::from(octets).to_string()),
            16 => <[u8; 16]>::try_from(content)
                .ok()
                .map(|octets| Ipv6Addr::from(octets).to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// The last second in which a certificate is valid, since 1970.
pub(crate) fn not_after(certificate: &[u8]) -> Option<i64> {
    let mut fields = from_issuer(certificate)?;
    fields.take(SEQUENCE)?;
    let mut validity = fields.take(SEQUENCE)?;
    validity.next()?;
    let (tag, text) = validity.next()?;
    let text = std::str::from_utf8(text.0).ok()?;
    let text = match tag {
        // Two digits of the year: 1950 to 2049 (RFC 5280, 4.1.2.5.1).
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, SanType};
    use std::net::IpAddr;

    fn certificate(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn every_kind_of_name_is_found() {
        let names = vec![
            SanType::DnsName("prometheus.example".try_into().unwrap()),
            SanType::Rfc822Name("ops@example.org".try_into().unwrap()),
            SanType::URI("spiffe://example.org/prometheus".try_into().unwrap()),
            SanType::IpAddress(IpAddr::from([10, 1, 2, 3])),
            SanType::IpAddress("2001:db8::1".parse().unwrap()),
        ];
        assert_eq!(
            alt_names(&certificate(names)),
            [
                "prometheus.example",
                "ops@example.org",
                "spiffe://example.org/prometheus",
                "10.1.2.3",
                "2001:db8::1"
            ]
        );
        assert!(alt_names(&certificate(Vec::new())).is_empty());
    }

    #[test]
    fn the_end_of_validity_is_found_in_both_spellings() {
        // 2031-02-03T00:00:00Z
        assert_eq!(not_after(&certificate(Vec::new())), Some(1_927_843_200));
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2051, 1, 1);
        let far = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(not_after(far.der()), Some(2_556_144_000));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            alt_names(&bytes);
            not_after(&bytes);
        }

        #[test]
        fn a_damaged_certificate_is_survived(at in 0usize..300, byte: u8) {
            let mut der = certificate(vec![SanType::DnsName("a.b".try_into().unwrap())]);
            let at = at % der.len();
            der[at] = byte;
            alt_names(&der);
            not_after(&der);
        }
    }
}
