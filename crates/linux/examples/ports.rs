//! Prints the ports of a kernel, and one row of each of their sources.
//!
//!     cargo run -p rocewatch-linux --example ports [SYSFS]
#![allow(clippy::print_stdout)] // what an example is for

use linux::{Kernel, Options};
use model::{ABSENT, Host, Opened, Port, Read, Source, SourceKind, Why};

fn main() -> Result<(), Why> {
    let mut options = Options::default();
    if let Some(sysfs) = std::env::args_os().nth(1) {
        options.sysfs = sysfs.into();
    }
    let kernel = Kernel::new(&options)?;
    for port in kernel.ports().map_err(|detail| Why::new("ports", detail))? {
        println!("{port:#?}");
        for source in SourceKind::ALL {
            show(&kernel, &port, source);
        }
    }
    Ok(())
}

fn show(kernel: &Kernel, port: &Port, source: SourceKind) {
    match kernel.open(port, source) {
        Opened::Active(mut opened) => show_row(source, &mut *opened),
        Opened::NotApplicable(why) => println!("  {source}: not applicable: {why}"),
        Opened::Failed(why) => println!("  {source}: failed: {why}"),
    }
}

fn show_row(kind: SourceKind, source: &mut dyn Source) {
    let mut row = vec![0; source.schema().columns.len()];
    let read = source.read(&mut row);
    println!("  {kind}: {} counters, {read:?}", row.len());
    if read != Read::Row {
        return;
    }
    for (column, value) in source.schema().columns.iter().zip(&row) {
        let signal = column.meaning.map_or("?", |meaning| meaning.signal().as_str());
        match *value {
            ABSENT => println!("    {} = absent ({signal})", column.name),
            value => println!("    {} = {value} ({signal})", column.name),
        }
    }
}
