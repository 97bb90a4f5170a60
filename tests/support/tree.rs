//! Lays out a sysfs tree from its text form: `PATH = CONTENT` is a file, `PATH -> TARGET` a symbolic link.

#![allow(dead_code)] // each test program uses a part
#![allow(clippy::disallowed_methods)] // writes the files of a test

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The tree of `tests/fixtures/NAME/sysfs.txt` in a folder that goes with the returned value.
pub(crate) fn lay_out(name: &str) -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(name)
        .join("sysfs.txt");
    let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    lay_out_text(&text)
}

/// The tree of this text. The inodes of files rise from line to line, as those of a kernel do from counter to counter.
pub(crate) fn lay_out_text(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let lines = || {
        text.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let files = lines().filter(|line| line.contains(" = ")).count();
    let mut empty = empty_files(folder.path(), files).into_iter();
    for line in lines() {
        lay_line(folder.path(), line, &mut empty);
    }
    folder
}

/// Files below `root` to be moved to where they belong, by inode: a file system gives the inodes of deleted files to new
/// ones in any order.
fn empty_files(root: &Path, count: usize) -> Vec<PathBuf> {
    let paths = (0..count).map(|number| root.join(format!("file{number}")));
    let mut made: Vec<_> = paths
        .map(|path| {
            fs::write(&path, "").expect("a file can be written");
            (fs::metadata(&path).expect("it is there").ino(), path)
        })
        .collect();
    made.sort();
    made.into_iter().map(|(_, path)| path).collect()
}

fn lay_line(root: &Path, line: &str, empty: &mut impl Iterator<Item = PathBuf>) {
    let parent = |path: &Path| {
        fs::create_dir_all(path.parent().expect("inside the tree")).expect("a folder can be made");
    };
    if let Some((path, content)) = line.split_once(" = ") {
        let path = root.join(path);
        parent(&path);
        fs::rename(empty.next().expect("one for each line"), &path).expect("a file can be moved");
        fs::write(path, format!("{content}\n")).expect("a file can be written");
    } else if let Some((path, target)) = line.split_once(" -> ") {
        let path = root.join(path);
        parent(&path);
        // The target need not be in the tree, but a driver's link is read as a name only.
        std::os::unix::fs::symlink(target, path).expect("a link can be made");
    } else {
        panic!("neither a file nor a link: {line}");
    }
}
