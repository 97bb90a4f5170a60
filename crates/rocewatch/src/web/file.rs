//! What `web.yml` may say: the format of Prometheus' exporter-toolkit, which operators have such files of already.
//! (<https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md>)

use super::reader::{Fields, Reader};
use super::tls_names;
use super::yaml::{self, Node, Problem};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use rustls::crypto::SupportedKxGroup;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A password of this cost takes seconds of a core, which is what a wrong one would take each time.
const DEAREST_HASH: u32 = 15;
/// Headers that can be set, and their possible values; none listed: any.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

/// All that a file says.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(super) tls: Option<Tls>,
    pub(super) headers: HeaderMap,
    pub(super) rate_limit: Option<RateLimit>,
    /// The hash of each user's password.
    pub(super) users: BTreeMap<String, String>,
}

/// `tls_server_config`.
#[derive(Debug)]
pub(super) struct Tls {
    /// Where it begins.
    pub(super) line: usize,
    pub(super) certificate: Pem,
    pub(super) key: Pem,
    pub(super) client_auth: ClientAuth,
    pub(super) client_ca: Option<Pem>,
    pub(super) allowed_names: Option<Vec<String>>,
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
    pub(super) cipher_suites: Vec<SupportedCipherSuite>,
    pub(super) groups: Vec<&'static dyn SupportedKxGroup>,
    pub(super) server_order: bool,
}

/// Certificates or a key, and the line that names them.
#[derive(Debug)]
pub(super) struct Pem {
    pub(super) line: usize,
    pub(super) source: PemSource,
}

/// Where PEM comes from.
#[derive(Debug)]
pub(super) enum PemSource {
    File(PathBuf),
    Inline(String),
}

/// Whether clients have to show a certificate, by the names of Go's `crypto/tls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    NoClientCert,
    RequestClientCert,
    RequireAnyClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

impl ClientAuth {
    const ALL: [(&'static str, Self); 5] = [
        ("NoClientCert", Self::NoClientCert),
        ("RequestClientCert", Self::RequestClientCert),
        ("RequireAnyClientCert", Self::RequireAnyClientCert),
        ("VerifyClientCertIfGiven", Self::VerifyClientCertIfGiven),
        ("RequireAndVerifyClientCert", Self::RequireAndVerifyClientCert),
    ];

    fn named(name: &str) -> Option<Self> {
        // The name that the fourth had at first.
        let name = if name == "RequireClientCert" {
            "RequireAnyClientCert"
        } else {
            name
        };
        Self::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| kind)
    }

    /// True if a client without a certificate is turned away.
    pub(super) fn requires(self) -> bool {
        matches!(
            self,
            Self::RequireAnyClientCert | Self::RequireAndVerifyClientCert
        )
    }

    /// True if a certificate counts only if an authority vouches for it.
    pub(super) fn verifies(self) -> bool {
        matches!(
            self,
            Self::VerifyClientCertIfGiven | Self::RequireAndVerifyClientCert
        )
    }
}

/// One request each `interval`, and `burst` of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateLimit {
    pub(super) interval: Duration,
    pub(super) burst: u32,
}

/// Reads a file's text; paths in it are relative to `folder`.
pub(super) fn parse(text: &str, folder: &Path) -> Result<File, Vec<Problem>> {
    let root = yaml::parse(text).map_err(|problem| vec![problem])?;
    let mut reader = Reader::default();
    let file = read(&mut reader, &root, folder);
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(file)
    } else {
        Err(problems)
    }
}

fn read(reader: &mut Reader, root: &Node, folder: &Path) -> File {
    let known = [
        "tls_server_config",
        "http_server_config",
        "basic_auth_users",
        "rate_limit",
    ];
    let fields = reader.fields(root, "the file", &known);
    File {
        tls: fields
            .get("tls_server_config")
            .and_then(|node| tls(reader, node, folder)),
        headers: fields
            .get("http_server_config")
            .map(|node| http(reader, node))
            .unwrap_or_default(),
        rate_limit: fields.get("rate_limit").and_then(|node| rate_limit(reader, node)),
        users: fields
            .get("basic_auth_users")
            .map(|node| users(reader, node))
            .unwrap_or_default(),
    }
}

fn tls(reader: &mut Reader, node: &Node, folder: &Path) -> Option<Tls> {
    let known = [
        "cert",
        "cert_file",
        "key",
        "key_file",
        "client_ca",
        "client_ca_file",
        "client_auth_type",
        "client_allowed_sans",
        "min_version",
        "max_version",
        "cipher_suites",
        "prefer_server_cipher_suites",
        "curve_preferences",
    ];
    let fields = reader.fields(node, "tls_server_config", &known);
    let certificate = pem(reader, &fields, "cert", folder);
    let key = pem(reader, &fields, "key", folder);
    for (given, name) in [(&certificate, "cert"), (&key, "key")] {
        if given.is_none() {
            reader.problem(
                fields.line,
                format!("TLS needs {name}_file (or {name}, written out)"),
            );
        }
    }
    let client_ca = pem(reader, &fields, "client_ca", folder);
    let client_auth = client_auth(reader, &fields);
    let allowed_names = fields.get("client_allowed_sans").map(|node| {
        let names = reader.texts(node, "client_allowed_sans");
        names.into_iter().map(|(_, name)| name.to_owned()).collect()
    });
    check_clients(
        reader,
        &fields,
        client_auth,
        client_ca.as_ref(),
        allowed_names.is_some(),
    );
    let versions = versions(reader, &fields);
    let cipher_suites = cipher_suites(reader, &fields);
    if versions.iter().all(|version| *version == &rustls::version::TLS12) && cipher_suites.is_empty() {
        reader.problem(
            fields.line,
            "TLS 1.2 is the only version, and cipher_suites leaves it none",
        );
    }
    Some(Tls {
        line: fields.line,
        certificate: certificate?,
        key: key?,
        client_auth,
        client_ca,
        allowed_names,
        versions,
        cipher_suites,
        groups: groups(reader, &fields),
        server_order: fields
            .get("prefer_server_cipher_suites")
            .and_then(|node| reader.flag(node, "prefer_server_cipher_suites"))
            .unwrap_or(true),
    })
}

/// `NAME: PEM` or `NAME_file: PATH`.
fn pem(reader: &mut Reader, fields: &Fields<'_>, name: &str, folder: &Path) -> Option<Pem> {
    let file_key = format!("{name}_file");
    let inline = fields.get(name).and_then(|node| {
        let source = PemSource::Inline(reader.text(node, name)?.to_owned());
        Some(Pem {
            line: node.line,
            source,
        })
    });
    let file = fields.get(&file_key).and_then(|node| {
        let source = PemSource::File(folder.join(reader.text(node, &file_key)?));
        Some(Pem {
            line: node.line,
            source,
        })
    });
    if let (Some(inline), Some(_)) = (&inline, &file) {
        reader.problem(
            inline.line,
            format!("{name} and {file_key} are both given; keep one"),
        );
    }
    inline.or(file)
}

fn client_auth(reader: &mut Reader, fields: &Fields<'_>) -> ClientAuth {
    let Some(node) = fields.get("client_auth_type") else {
        return ClientAuth::NoClientCert;
    };
    let name = reader.text(node, "client_auth_type").unwrap_or_default();
    ClientAuth::named(name).unwrap_or_else(|| {
        let all = ClientAuth::ALL.map(|(name, _)| name).join(", ");
        reader.problem(node.line, format!("client_auth_type has to be one of {all}"));
        ClientAuth::NoClientCert
    })
}

/// What is asked of clients has to make sense as a whole.
fn check_clients(
    reader: &mut Reader,
    fields: &Fields<'_>,
    kind: ClientAuth,
    authority: Option<&Pem>,
    names: bool,
) {
    let line = fields
        .get("client_auth_type")
        .map_or(fields.line, |node| node.line);
    match authority {
        Some(pem) if kind == ClientAuth::NoClientCert => reader.problem(
            pem.line,
            "client_ca is given, but no certificate is asked for; set client_auth_type to RequireAndVerifyClientCert",
        ),
        None if kind.verifies() => reader.problem(
            line,
            "to verify client certificates, client_ca_file has to name the authority that signs them",
        ),
        _ => {}
    }
    if names && !kind.requires() {
        let line = fields.get("client_allowed_sans").map_or(line, |node| node.line);
        reader.problem(
            line,
            "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert (or RequireAnyClientCert): otherwise a client can stay nameless",
        );
    }
}

fn versions(reader: &mut Reader, fields: &Fields<'_>) -> Vec<&'static SupportedProtocolVersion> {
    let least = version(reader, fields, "min_version", 12);
    let most = version(reader, fields, "max_version", 13);
    if least > most {
        let line = fields.get("max_version").map_or(fields.line, |node| node.line);
        reader.problem(line, "max_version is below min_version");
    }
    // The newest first, as a client is to take it.
    let all = [(13, &rustls::version::TLS13), (12, &rustls::version::TLS12)];
    all.into_iter()
        .filter(|(number, _)| (least..=most).contains(number))
        .map(|(_, version)| version)
        .collect()
}

fn version(reader: &mut Reader, fields: &Fields<'_>, key: &str, default: u8) -> u8 {
    let Some(node) = fields.get(key) else {
        return default;
    };
    match reader.text(node, key) {
        Some("TLS13") => 13,
        Some("TLS12") => 12,
        Some("TLS11" | "TLS10") => {
            reader.problem(
                node.line,
                format!(
                    "{key}: TLS 1.0 and 1.1 are broken (RFC 8996) and cannot be had; write TLS12 or TLS13"
                ),
            );
            default
        }
        Some(_) => {
            reader.problem(node.line, format!("{key} has to be TLS12 or TLS13"));
            default
        }
        None => default,
    }
}

/// Those of TLS 1.2 are chosen; those of TLS 1.3 are all good and always there, as with exporter-toolkit.
fn cipher_suites(reader: &mut Reader, fields: &Fields<'_>) -> Vec<SupportedCipherSuite> {
    let Some(node) = fields.get("cipher_suites") else {
        return rustls::crypto::ring::ALL_CIPHER_SUITES.to_vec();
    };
    let mut chosen: Vec<_> = tls_names::suites_of_tls13().collect();
    let names = reader.texts(node, "cipher_suites");
    if names.is_empty() {
        return rustls::crypto::ring::ALL_CIPHER_SUITES.to_vec();
    }
    for (line, name) in names {
        match tls_names::cipher_suite(name) {
            Ok(suite) if !chosen.contains(&suite) => chosen.push(suite),
            Ok(_) => {}
            Err(what) => reader.problem(line, what),
        }
    }
    if chosen.iter().all(|suite| suite.tls13().is_some()) {
        // Nothing but names of TLS 1.3: no choice was made among those of TLS 1.2.
        chosen.extend(tls_names::suites_of_tls12());
    }
    chosen
}

fn groups(reader: &mut Reader, fields: &Fields<'_>) -> Vec<&'static dyn SupportedKxGroup> {
    let names = fields
        .get("curve_preferences")
        .map(|node| reader.texts(node, "curve_preferences"))
        .unwrap_or_default();
    if names.is_empty() {
        return rustls::crypto::ring::ALL_KX_GROUPS.to_vec();
    }
    let mut chosen: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for (line, name) in names {
        match tls_names::group(name) {
            Ok(group) if chosen.iter().all(|other| other.name() != group.name()) => chosen.push(group),
            Ok(_) => {}
            Err(what) => reader.problem(line, what),
        }
    }
    chosen
}

fn http(reader: &mut Reader, node: &Node) -> HeaderMap {
    let fields = reader.fields(node, "http_server_config", &["http2", "headers"]);
    // Whether a client may speak HTTP/2; that the server does, no value promises, and this one speaks HTTP/1.1.
    if let Some(node) = fields.get("http2") {
        reader.flag(node, "http2");
    }
    let mut headers = HeaderMap::new();
    let Some(node) = fields.get("headers") else {
        return headers;
    };
    let known = HEADERS.map(|(name, _)| name);
    let fields = reader.fields(node, "headers", &known);
    for (name, values) in HEADERS {
        let Some(node) = fields.get(name) else { continue };
        let Some(text) = reader.text(node, name).filter(|text| !text.is_empty()) else {
            continue;
        };
        if !values.is_empty() && !values.contains(&text) {
            reader.problem(node.line, format!("{name} has to be {}", values.join(" or ")));
            continue;
        }
        match (
            HeaderName::try_from(name.to_ascii_lowercase()),
            HeaderValue::from_str(text),
        ) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => reader.problem(
                node.line,
                format!("{name}: a header's value is one line of ASCII"),
            ),
        }
    }
    headers
}

fn rate_limit(reader: &mut Reader, node: &Node) -> Option<RateLimit> {
    let fields = reader.fields(node, "rate_limit", &["interval", "burst"]);
    let interval = fields
        .get("interval")
        .and_then(|node| interval(reader, node))
        .unwrap_or_default();
    let burst = match fields.get("burst") {
        None => Some(1),
        Some(node) => {
            let burst = reader.text(node, "burst").and_then(|text| text.parse().ok());
            if !matches!(burst, Some(1..)) {
                reader.problem(
                    node.line,
                    "burst has to be a number of requests, at least 1: with 0 nobody could scrape",
                );
            }
            burst
        }
    };
    // An interval of 0 switches the limit off.
    (!interval.is_zero()).then_some(RateLimit {
        interval,
        burst: burst?,
    })
}

fn interval(reader: &mut Reader, node: &Node) -> Option<Duration> {
    let text = reader.text(node, "interval")?;
    if text == "0" {
        return Some(Duration::ZERO);
    }
    match humantime::parse_duration(text) {
        Ok(interval) if interval <= Duration::from_secs(3600) => Some(interval),
        Ok(_) => {
            reader.problem(
                node.line,
                "interval: one request in more than an hour is no limit but a lock",
            );
            None
        }
        Err(_) => {
            reader.problem(
                node.line,
                "interval has to be a duration such as 1s or 100ms; 0 switches the limit off",
            );
            None
        }
    }
}

fn users(reader: &mut Reader, node: &Node) -> BTreeMap<String, String> {
    let mut users = BTreeMap::new();
    for (line, name, node) in reader.pairs(node, "basic_auth_users") {
        let shown = name.escape_debug();
        if name.contains(':') {
            reader.problem(
                line,
                format!("user `{shown}`: a name cannot hold a colon (RFC 7617)"),
            );
            continue;
        }
        let Some(hash) = reader.text(node, name) else {
            continue;
        };
        match hash.parse::<bcrypt::HashParts>() {
            Ok(parts) if parts.get_cost() > DEAREST_HASH => reader.problem(
                node.line,
                format!("user `{shown}`: a hash of cost {} takes many seconds to check; 10 to 12 is usual", parts.get_cost()),
            ),
            Ok(_) => {
                users.insert(name.to_owned(), hash.to_owned());
            }
            // The hash itself is not shown: what stands there may be the password.
            Err(_) => reader.problem(
                node.line,
                format!("user `{shown}`: the password has to be given as its bcrypt hash; `htpasswd -nBC 10 USER` makes one"),
            ),
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

    fn read(text: &str) -> File {
        parse(text, Path::new("/etc/rocewatch")).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// The mistakes as `LINE: WHAT`.
    fn mistakes(text: &str) -> Vec<String> {
        let problems = parse(text, Path::new("")).expect_err("this is wrong");
        problems
            .into_iter()
            .map(|Problem { line, what }| format!("{line}: {what}"))
            .collect()
    }

    fn mistake(text: &str) -> String {
        let mut all = mistakes(text);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn nothing_asks_for_nothing() {
        for text in ["", "tls_server_config:\nbasic_auth_users:\n", "# nothing\n"] {
            let file = read(text);
            assert!(
                file.tls.is_none() && file.users.is_empty() && file.rate_limit.is_none(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn the_defaults_are_those_of_exporter_toolkit() {
        let tls = read("tls_server_config:\n  cert_file: a.crt\n  key_file: /run/a.key\n")
            .tls
            .unwrap();
        assert!(
            matches!(&tls.certificate.source, PemSource::File(path) if path == Path::new("/etc/rocewatch/a.crt"))
        );
        assert!(matches!(&tls.key.source, PemSource::File(path) if path == Path::new("/run/a.key")));
        assert_eq!(tls.client_auth, ClientAuth::NoClientCert);
        assert_eq!(tls.versions, [&rustls::version::TLS13, &rustls::version::TLS12]);
        assert!(tls.server_order);
        assert_eq!((tls.cipher_suites.len(), tls.groups.len()), (9, 3));
    }

    #[test]
    fn every_key_is_taken() {
        let file = read(&format!(
            "tls_server_config:
  cert: |
    -----BEGIN CERTIFICATE-----
  key: x
  client_ca: y
  client_auth_type: RequireAndVerifyClientCert
  client_allowed_sans: [prometheus, 10.0.0.1]
  min_version: TLS12
  max_version: TLS12
  cipher_suites:
    - TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
    - TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
  prefer_server_cipher_suites: false
  curve_preferences: [CurveP384, X25519]
http_server_config:
  http2: true
  headers:
    X-Frame-Options: deny
    X-XSS-Protection: ''
basic_auth_users:
  alice: {HASH}
  'bob': '{HASH}'
rate_limit: {{interval: 1s, burst: 20}}
"
        ));
        let tls = file.tls.unwrap();
        assert!(
            matches!(&tls.certificate.source, PemSource::Inline(text) if text == "-----BEGIN CERTIFICATE-----\n")
        );
        assert_eq!(tls.client_auth, ClientAuth::RequireAndVerifyClientCert);
        assert_eq!(tls.allowed_names.unwrap(), ["prometheus", "10.0.0.1"]);
        assert_eq!(tls.versions, [&rustls::version::TLS12]);
        let of_tls12: Vec<_> = tls
            .cipher_suites
            .iter()
            .filter(|suite| suite.tls13().is_none())
            .map(|suite| suite.suite().as_str().unwrap())
            .collect();
        assert_eq!(
            of_tls12,
            [
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
            ]
        );
        assert!(!tls.server_order);
        let groups: Vec<_> = tls.groups.iter().map(|group| group.name()).collect();
        assert_eq!(
            groups,
            [rustls::NamedGroup::secp384r1, rustls::NamedGroup::X25519]
        );
        assert_eq!(file.headers.len(), 1);
        assert_eq!(file.headers["x-frame-options"], "deny");
        assert_eq!(file.users.keys().collect::<Vec<_>>(), ["alice", "bob"]);
        let limit = RateLimit {
            interval: Duration::from_secs(1),
            burst: 20,
        };
        assert_eq!(file.rate_limit, Some(limit));
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let all = mistakes(
            "tls_server_config:
  cert_fil: a
  min_version: TLS10
  client_auth_type: Require
basic_auth_users:
  alice: secret
http_server_config:
  headers:
    X-Frame-Options: allow
    Server: me
basic_auth: {}
",
        );
        let begins = [
            "2: unknown key `cert_fil`; did you mean `cert_file`?",
            "2: TLS needs cert_file",
            "2: TLS needs key_file",
            "3: min_version: TLS 1.0 and 1.1 are broken",
            "4: client_auth_type has to be one of NoClientCert, RequestClientCert",
            "6: user `alice`: the password has to be given as its bcrypt hash",
            "9: X-Frame-Options has to be deny or sameorigin",
            "10: unknown key `Server`",
            "11: unknown key `basic_auth`; did you mean `basic_auth_users`?",
        ];
        for (found, begin) in all.iter().zip(begins) {
            assert!(found.starts_with(begin), "{found} | {begin}");
        }
        assert_eq!(all.len(), begins.len(), "{all:#?}");
        assert!(!all.concat().contains("secret"), "{all:?}");
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        let tls = |rest: &str| {
            mistake(&format!(
                "tls_server_config:\n  cert_file: a\n  key_file: b\n{rest}"
            ))
        };
        assert!(
            tls("  client_auth_type: RequireAndVerifyClientCert\n")
                .contains("client_ca_file has to name the authority")
        );
        assert!(tls("  client_ca_file: c\n").contains("no certificate is asked for"));
        assert!(
            tls("  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n")
                .contains("a client can stay nameless")
        );
        assert!(tls("  cert: x\n").contains("keep one"));
        assert!(tls("  min_version: TLS13\n  max_version: TLS12\n").contains("max_version is below"));
        assert!(
            tls("  cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]\n").starts_with("4: cipher suite `TLS_RSA")
        );
        assert!(tls("  curve_preferences: [CurveP521]\n").contains("there are X25519"));
        assert!(
            tls("  client_allowed_sans: a\n  client_auth_type: RequireAnyClientCert\n").contains("a list")
        );
    }

    #[test]
    fn limits_and_passwords_that_make_no_sense_are_refused() {
        assert!(mistake("rate_limit: {interval: 1s, burst: 0}").contains("at least 1"));
        assert!(mistake("rate_limit: {interval: fast}").contains("a duration such as 1s"));
        assert_eq!(read("rate_limit: {interval: 0, burst: 3}").rate_limit, None);
        assert!(mistake(&format!("basic_auth_users: {{'a:b': {HASH}}}")).contains("a colon"));
        let dear = HASH.replace("$10$", "$16$");
        assert!(mistake(&format!("basic_auth_users: {{a: {dear}}}")).contains("cost 16"));
        assert!(mistake("[]").contains("has to be keys with values"));
    }

    #[test]
    fn the_former_name_of_a_policy_still_holds() {
        let text = "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireClientCert}";
        assert_eq!(
            read(text).tls.unwrap().client_auth,
            ClientAuth::RequireAnyClientCert
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(tls_server_config|cert|key|_file|client_ca|users|: |\\n|  |- |[a-z{}\\[\\],'\"]){0,20}") {
            let _ = parse(&text, Path::new(""));
        }
    }
}
