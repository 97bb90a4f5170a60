//! The rules of the house that a compiler does not check: who may import whom, where `unsafe` may stand, and that no
//! driver's counter is known by name outside the catalogue.

#![allow(clippy::disallowed_methods)] // reads the project's own sources

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Each crate, and those that it may import. Imports run downwards only.
const IMPORTS: [(&str, &[&str]); 10] = [
    ("catalog", &[]),
    ("ring", &[]),
    ("model", &["catalog"]),
    ("signals", &["catalog", "model", "ring"]),
    ("capture", &["catalog", "model"]),
    ("linux", &["capture", "catalog", "model"]),
    ("sim", &["catalog", "model"]),
    ("archive", &["catalog", "model", "ring", "signals"]),
    ("doctor", &["catalog", "model", "signals"]),
    (
        "rocewatch",
        &[
            "archive", "capture", "catalog", "doctor", "linux", "model", "ring", "signals", "sim",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn manifest(name: &str) -> toml::Table {
    let path = root().join("crates").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_crate_is_in_the_table_of_imports() {
    let mut folders: Vec<_> = std::fs::read_dir(root().join("crates"))
        .expect("crates/ is there")
        .map(|entry| {
            entry
                .expect("crates/ is readable")
                .file_name()
                .into_string()
                .expect("names are text")
        })
        .collect();
    let mut known: Vec<_> = IMPORTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    folders.sort();
    known.sort();
    assert_eq!(folders, known);
}

#[test]
fn imports_run_downwards_only() {
    for (name, allowed) in IMPORTS {
        let manifest = manifest(name);
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for (dependency, _) in dependencies.into_iter().flatten() {
            let ours = IMPORTS.iter().any(|(other, _)| other == dependency);
            assert!(
                !ours || allowed.contains(&dependency.as_str()),
                "crate {name} must not import {dependency}"
            );
        }
    }
}

#[test]
fn the_ring_depends_on_nothing() {
    assert!(
        manifest("ring")
            .get("dependencies")
            .and_then(toml::Value::as_table)
            .is_none_or(toml::Table::is_empty)
    );
}

#[test]
fn unsafe_code_is_forbidden_everywhere_but_in_linux() {
    let workspace: toml::Table = std::fs::read_to_string(root().join("Cargo.toml"))
        .expect("readable")
        .parse()
        .expect("TOML");
    assert_eq!(
        workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(),
        Some("forbid")
    );
    for (name, _) in IMPORTS.iter().filter(|(name, _)| *name != "linux") {
        let lints = &manifest(name)["lints"];
        assert_eq!(
            lints.get("workspace").and_then(toml::Value::as_bool),
            Some(true),
            "crate {name}"
        );
    }
}

fn stem(file: &Path) -> String {
    file.file_stem()
        .expect("a file has a name")
        .to_string_lossy()
        .into_owned()
}

/// Names of the modules that exist only in tests.
fn test_modules(files: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("sources are text");
        let declared = text
            .split("#[cfg(test)]\nmod ")
            .skip(1)
            .filter_map(|rest| rest.split_once(';'));
        names.extend(
            declared
                .map(|(name, _)| name.to_owned())
                .filter(|name| !name.contains('{')),
        );
    }
    names
}

#[test]
fn no_driver_counter_is_known_by_name_outside_the_catalogue() {
    let mut names = BTreeMap::new();
    let (kernel, drivers): (Vec<_>, Vec<_>) = catalog::DRIVERS.iter().partition(|driver| driver.name == "*");
    for driver in drivers {
        for entry in driver.entries {
            names.insert(format!("\"{}\"", entry.name), driver.file);
        }
    }
    // What the kernel answers for every driver has names of Rocewatch's own, some of which a driver has as well.
    for entry in kernel.iter().flat_map(|file| file.entries) {
        names.remove(&format!("\"{}\"", entry.name));
    }
    for (name, _) in IMPORTS.iter().filter(|(name, _)| *name != "catalog") {
        let mut files = Vec::new();
        rust_files(&root().join("crates").join(name).join("src"), &mut files);
        let tests = test_modules(&files);
        for file in files.iter().filter(|file| !tests.contains(&stem(file))) {
            let text = std::fs::read_to_string(file).expect("sources are text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let known = names.iter().find(|(literal, _)| line.contains(literal.as_str()));
                assert!(known.is_none(), "{}: the catalogue's {known:?}", file.display());
            }
        }
    }
}

#[test]
fn nothing_refers_to_a_folder_outside_the_project() {
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        rust_files(&root().join(folder), &mut files);
    }
    let outside = ["..", "shared"].join("/");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("sources are text");
        assert!(
            !text.contains(&outside),
            "{} refers to a folder that the project does not contain",
            file.display()
        );
    }
}
