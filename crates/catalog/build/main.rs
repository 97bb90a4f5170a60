//! Turns the driver files of `data/` into static tables, so that the daemon parses nothing at start and a mistake in
//! a data file is a build error that names the file and the counter.

// A build script reads the files of its own package, and printing is how it talks to cargo; the bans are for the daemon.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

mod data;
mod tables;

use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let data = Path::new(&root).join("data");
    println!("cargo::rerun-if-changed={}", data.display());
    let files = data::driver_files(&data);
    let metrics: data::MetricsFile = data::parse(&data.join("metrics.toml"));

    let mut code = String::new();
    tables::write_signals(&mut code, &files);
    tables::write_drivers(&mut code, &files);
    tables::write_names(&mut code, &files);
    tables::write_families(&mut code, &metrics.family, &files);
    tables::write_unexposed(&mut code, &metrics.unexposed, &files);
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("tables.rs"), code).expect("OUT_DIR is writable");
}
