//! The documents are those that the data make. `UPDATE_DOCS=1 cargo test -p rocewatch-catalog` writes them anew.

// A test reads and writes the documents of its own repository; the ban is for the daemon.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

fn check(name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("docs/ can be made");
        std::fs::write(&path, wanted).expect("docs/ is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let line = found
        .lines()
        .zip(wanted.lines())
        .position(|(a, b)| a != b)
        .map_or(0, |line| line + 1);
    assert!(
        found == wanted,
        "docs/{name} is not what the data say (line {line}): run with UPDATE_DOCS=1"
    );
}

#[test]
fn counters() {
    check("counters.md", &catalog::docs::counters());
}

#[test]
fn metrics() {
    check("metrics.md", &catalog::docs::metrics());
}

/// Every link from one document to a heading of the other, or of itself, leads somewhere.
#[test]
fn links_lead_somewhere() {
    let documents = [
        ("counters.md", catalog::docs::counters()),
        ("metrics.md", catalog::docs::metrics()),
    ];
    let anchors = |name: &str| -> Vec<String> {
        let (_, text) = documents
            .iter()
            .find(|(document, _)| *document == name)
            .expect("a document");
        let headings = text.lines().filter(|line| line.starts_with('#'));
        headings
            .map(|line| line.trim_start_matches(['#', ' ']).to_lowercase())
            .map(|heading| {
                let keep = |c: char| {
                    if c == ' ' {
                        Some('-')
                    } else {
                        (c.is_alphanumeric() || c == '_' || c == '-').then_some(c)
                    }
                };
                heading.chars().filter_map(keep).collect()
            })
            .collect()
    };
    for (name, text) in &documents {
        for link in text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap_or_default())
        {
            let (document, anchor) = link.split_once('#').unwrap_or((link, ""));
            let document = if document.is_empty() { name } else { document };
            assert!(
                anchor.is_empty() || anchors(document).iter().any(|known| known == anchor),
                "{name}: {link}"
            );
        }
    }
}
