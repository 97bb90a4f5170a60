//! `rocewatch generate`: completions and manual pages, from the definition of the command line.

use super::print;
use crate::cli::{Cli, Generate};
use crate::failure::Failure;
use crate::files;
use clap::{Command, CommandFactory as _};
use std::path::Path;

/// Does what `generate` was asked for.
pub(super) fn generate(what: &Generate) -> Result<(), Failure> {
    match what {
        Generate::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "rocewatch", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Generate::Man { folder } => manual(folder)
            .map_err(|error| Failure::Runtime(format!("cannot write into {}: {error}", folder.display()))),
    }
}

fn manual(folder: &Path) -> std::io::Result<()> {
    files::make_directory(folder)?;
    let mut whole = Cli::command();
    // So that each command knows its whole name.
    whole.build();
    write_pages(&whole, folder)
}

fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    files::write(&folder.join(page.get_filename()), &text)?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write_pages(command, folder))
}
