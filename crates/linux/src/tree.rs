//! The kernel's files. Nothing else in this crate opens one.

use crate::errno::why_from_errno;
use crate::number::{NotANumber, decimal};
use capture::{Files, Miss};
use model::{ABSENT, Read, Why};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FsWord, Mode, OFlags, accessat, fstatfs, open, openat, readlinkat};
use rustix::io::{Errno, pread, retry_on_intr};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// `SYSFS_MAGIC`, include/uapi/linux/magic.h.
const SYSFS_MAGIC: FsWord = 0x6265_6572;
/// Longest content of a fact's file; the longest that is read, a node description, has 64 bytes.
const TEXT: usize = 256;
/// Longest content of any file of sysfs.
const PAGE: usize = 64 << 10;
/// Longest content of a number's file; 20 digits and a newline.
const NUMBER: usize = 64;
/// Longest content of a file with a table of counters: 28 kinds of PCI Express errors, with 20 digits each.
const TABLE: usize = 2048;
/// Most entries of a directory that are looked at: more netdevs than a node can run containers.
const ENTRIES: usize = 16_384;

/// A sysfs: the kernel's own, wherever it is mounted, a copy of one, or what a capture recorded of one.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Directory { descriptor: OwnedFd, is_sysfs: bool },
    Recorded(Files),
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name.
    pub name: String,
    /// Its inode. sysfs numbers its files as they are created (`idr_alloc_cyclic` in fs/kernfs/dir.c), so in a directory of
    /// attributes the order of inodes is the driver's order.
    pub inode: u64,
}

/// Why a file gave no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The kernel refused.
    Errno(Errno),
    /// It answered something else.
    Content(NotANumber),
}

impl Fault {
    /// The fault, met at `what`.
    pub(crate) fn at(self, what: &str) -> Why {
        match self {
            Self::Errno(errno) => why_from_errno(errno, what),
            Self::Content(content) => Why::new(content.reason(), format!("{what} {content}")),
        }
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<NotANumber> for Fault {
    fn from(content: NotANumber) -> Self {
        Self::Content(content)
    }
}

impl Tree {
    /// The tree whose root is the directory `root`.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub(crate) fn open(root: &Path) -> Result<Self, Why> {
        let fail = |errno| why_from_errno(errno, &root.display().to_string());
        let canonical = std::fs::canonicalize(root).map_err(|error| fail(from_io(&error)))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open(&canonical, flags, Mode::empty()).map_err(fail)?;
        let is_sysfs = fstatfs(&descriptor).map_err(fail)?.f_type == SYSFS_MAGIC;
        Ok(Self {
            root: canonical,
            store: Store::Directory { descriptor, is_sysfs },
        })
    }

    /// The tree that a capture recorded; `name` is its root's name in messages.
    pub(crate) fn recorded(files: Files, name: &Path) -> Self {
        Self {
            root: name.to_owned(),
            store: Store::Recorded(files),
        }
    }

    /// True if the running kernel itself answers, so that its netlink speaks of the same RDMA devices.
    pub(crate) fn is_sysfs(&self) -> bool {
        matches!(self.store, Store::Directory { is_sysfs: true, .. })
    }

    /// Where the tree is, for messages.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The content of a small file, without the white space at its end.
    ///
    /// # Errors
    /// The errno, `EFBIG` for a file that is longer than any fact; `not_utf8`.
    pub(crate) fn read_string(&self, path: &str) -> Result<String, Why> {
        let mut content = [0; TEXT];
        let content = self
            .read(path, &mut content)
            .map_err(|errno| self.why(errno, path))?;
        match std::str::from_utf8(content) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(_) => Err(Why::new("not_utf8", format!("{} holds no text", self.name(path)))),
        }
    }

    /// The number in a file, by `parse`.
    ///
    /// # Errors
    /// The errno, or what the file holds instead of a number.
    pub(crate) fn number(
        &self,
        path: &str,
        parse: impl FnOnce(&[u8]) -> Result<u64, NotANumber>,
    ) -> Result<u64, Why> {
        let mut content = [0; NUMBER];
        let content = self.read(path, &mut content).map_err(Fault::from);
        content
            .and_then(|content| Ok(parse(content)?))
            .map_err(|fault| fault.at(&self.name(path)))
    }

    /// A file that is read again and again.
    ///
    /// # Errors
    /// The errno of opening it.
    pub(crate) fn file(&self, path: &str) -> Result<File, Why> {
        let content = match &self.store {
            Store::Directory { descriptor, .. } => open_file(descriptor, path).map(Content::Kernel),
            Store::Recorded(files) => recorded(files, path).map(Content::Recorded),
        };
        Ok(File {
            content: content.map_err(|errno| self.why(errno, path))?,
            name: self.name(path).into(),
        })
    }

    /// All of a file, for a capture. At most a page, which is all that a file of sysfs has.
    ///
    /// # Errors
    /// The errno.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut content = vec![0; PAGE];
        let length = self.read(path, &mut content)?.len();
        content.truncate(length);
        Ok(content)
    }

    /// All of a file that is no object of sysfs, in as many reads as it takes.
    ///
    /// # Errors
    /// The errno; `EFBIG` if it is longer than `most`.
    pub(crate) fn whole(&self, path: &str, most: usize) -> Result<Vec<u8>, Errno> {
        let descriptor = match &self.store {
            Store::Directory { descriptor, .. } => open_file(descriptor, path)?,
            Store::Recorded(files) => return Ok(files.read(path).map_err(errno_of)?.to_vec()),
        };
        let (mut content, mut chunk) = (Vec::new(), vec![0; PAGE]);
        loop {
            let length = retry_on_intr(|| pread(&descriptor, &mut chunk, content.len() as u64))?;
            content.extend_from_slice(&chunk[..length]);
            match length {
                0 => return Ok(content),
                _ if content.len() > most => return Err(Errno::FBIG),
                _ => {}
            }
        }
    }

    /// The entries of a directory, by name.
    ///
    /// # Errors
    /// The errno; `too_many` if there are more than any kernel has.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Entry>, Why> {
        let descriptor = match &self.store {
            Store::Directory { descriptor, .. } => descriptor,
            Store::Recorded(files) => {
                let entries = files.list(path).map_err(|miss| self.why(errno_of(miss), path))?;
                let entry = |(name, inode)| Entry { name, inode };
                return Ok(entries.into_iter().map(entry).collect());
            }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(descriptor, path, flags, Mode::empty());
        let directory = directory
            .and_then(Dir::new)
            .map_err(|errno| self.why(errno, path))?;
        let mut entries = Vec::new();
        for entry in directory {
            let entry = entry.map_err(|errno| self.why(errno, path))?;
            // A name that is no text is no kernel object's.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == ENTRIES {
                return Err(Why::new(
                    "too_many",
                    format!("{} has over {ENTRIES} entries", self.name(path)),
                ));
            }
            entries.push(Entry {
                name: name.to_owned(),
                inode: entry.ino(),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// True if there is something at `path`.
    pub(crate) fn exists(&self, path: &str) -> bool {
        match &self.store {
            Store::Directory { descriptor, .. } => {
                accessat(descriptor, path, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
            }
            Store::Recorded(files) => files.resolve(path).is_ok(),
        }
    }

    /// Where the link at `path` leads, as it is written there.
    ///
    /// # Errors
    /// The errno; `EINVAL` of what is no link.
    pub(crate) fn link(&self, path: &str) -> Result<String, Errno> {
        match &self.store {
            Store::Directory { descriptor, .. } => {
                let target = readlinkat(descriptor, path, Vec::new())?;
                target.into_string().map_err(|_| Errno::ILSEQ)
            }
            Store::Recorded(files) => files.link(path).map(str::to_owned).ok_or(Errno::INVAL),
        }
    }

    /// Where `path` is below the root when all links are followed.
    ///
    /// # Errors
    /// The errno; `outside` if a link leads out of the tree.
    pub(crate) fn resolve(&self, path: &str) -> Result<String, Why> {
        let canonical = match &self.store {
            Store::Recorded(files) => {
                return files.resolve(path).map_err(|miss| self.why(errno_of(miss), path));
            }
            Store::Directory { descriptor, .. } => canonical(descriptor, &self.root, path),
        };
        let canonical = canonical.map_err(|errno| self.why(errno, path))?;
        let inside = canonical.strip_prefix(&self.root).ok().and_then(Path::to_str);
        inside
            .map(str::to_owned)
            .ok_or_else(|| Why::new("outside", format!("{} leads out of the tree", self.name(path))))
    }

    fn read<'a>(&self, path: &str, content: &'a mut [u8]) -> Result<&'a [u8], Errno> {
        match &self.store {
            Store::Directory { descriptor, .. } => read_whole(&open_file(descriptor, path)?, content),
            Store::Recorded(files) => copy_whole(&recorded(files, path)?, content),
        }
    }

    fn name(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    fn why(&self, errno: Errno, path: &str) -> Why {
        why_from_errno(errno, &self.name(path))
    }
}

/// A file that stays open, so that reading it is one system call.
#[derive(Debug)]
pub(crate) struct File {
    content: Content,
    name: Box<str>,
}

#[derive(Debug)]
enum Content {
    Kernel(OwnedFd),
    Recorded(Recorded),
}

/// What a capture has of a file.
type Recorded = Result<Box<[u8]>, Errno>;

impl Content {
    fn read<'a>(&self, content: &'a mut [u8]) -> Result<&'a [u8], Errno> {
        match self {
            Self::Kernel(descriptor) => read_whole(descriptor, content),
            Self::Recorded(recorded) => copy_whole(recorded, content),
        }
    }

    fn parse<T>(&self, parse: impl FnOnce(&[u8]) -> Result<T, NotANumber>) -> Result<T, Fault> {
        Ok(parse(self.read(&mut [0; NUMBER])?)?)
    }
}

/// Files of a number each that are read in one go. Their descriptors lie together: between two rounds the caches go to
/// others, and a name beside each descriptor doubled the lines that had to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    // Files of one tree are all of one kind: one of the two lists is empty.
    descriptors: Vec<OwnedFd>,
    recorded: Vec<Recorded>,
    names: Vec<Box<str>>,
}

impl FromIterator<File> for Numbers {
    fn from_iter<I: IntoIterator<Item = File>>(files: I) -> Self {
        let mut numbers = Self::default();
        for File { content, name } in files {
            match content {
                Content::Kernel(descriptor) => numbers.descriptors.push(descriptor),
                Content::Recorded(recorded) => numbers.recorded.push(recorded),
            }
            numbers.names.push(name);
        }
        numbers
    }
}

impl Numbers {
    /// The number that is now in the file of that place.
    ///
    /// # Errors
    /// As for [`File::number`].
    pub(crate) fn number(&self, at: usize) -> Result<u64, Fault> {
        let mut content = [0; NUMBER];
        let content = match self.descriptors.get(at) {
            Some(descriptor) => read_whole(descriptor, &mut content),
            None => copy_whole(&self.recorded[at], &mut content),
        };
        Ok(decimal(content?)?)
    }

    /// The fault, met at the file of that place.
    pub(crate) fn why(&self, at: usize, fault: Fault) -> Why {
        fault.at(&self.names[at])
    }
}

impl File {
    /// The decimal number that the kernel now puts into the file.
    ///
    /// # Errors
    /// `ENODEV` once the device is gone: sysfs ends every read through a descriptor of before.
    pub(crate) fn number(&self) -> Result<u64, Fault> {
        self.parse(decimal)
    }

    /// The content of the file now, by `parse`.
    ///
    /// # Errors
    /// As for [`Self::number`].
    pub(crate) fn parse<T>(&self, parse: impl FnOnce(&[u8]) -> Result<T, NotANumber>) -> Result<T, Fault> {
        self.content.parse(parse)
    }

    /// The same of a file with a table of counters.
    ///
    /// # Errors
    /// As for [`Self::number`].
    pub(crate) fn parse_table<T>(
        &self,
        parse: impl FnOnce(&[u8]) -> Result<T, NotANumber>,
    ) -> Result<T, Fault> {
        Ok(parse(self.content.read(&mut [0; TABLE])?)?)
    }

    /// The fault, met at this file.
    pub(crate) fn why(&self, fault: Fault) -> Why {
        fault.at(&self.name)
    }
}

/// Fills a row from a file for each cell. A file that cannot be read costs its own cell; the row is missing if no file can, or
/// the device is gone.
pub(crate) fn read_row(row: &mut [u64], files: &[File], read: impl Fn(&File) -> Result<u64, Fault>) -> Read {
    let (mut any, mut failed) = (false, None);
    for (cell, file) in row.iter_mut().zip(files) {
        *cell = ABSENT;
        match read(file) {
            Ok(value) => {
                *cell = value;
                any = true;
            }
            Err(gone @ Fault::Errno(Errno::NODEV)) => return Read::Missing(file.why(gone)),
            Err(fault) => failed = Some((file, fault)),
        }
    }
    match failed {
        Some((file, fault)) if !any => Read::Missing(file.why(fault)),
        _ => Read::Row,
    }
}

/// What one `read` gives, which for a sysfs attribute is all of it.
fn read_whole<'a>(descriptor: &OwnedFd, content: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let length = retry_on_intr(|| pread(descriptor, &mut *content, 0))?;
    // A file that fills the buffer may be longer, and half a number is a wrong number.
    if length == content.len() {
        Err(Errno::FBIG)
    } else {
        Ok(&content[..length])
    }
}

/// The same of what was recorded.
fn copy_whole<'a>(recorded: &Recorded, content: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let recorded = recorded.as_ref().map_err(|errno| *errno)?;
    if recorded.len() >= content.len() {
        return Err(Errno::FBIG);
    }
    let content = &mut content[..recorded.len()];
    content.copy_from_slice(recorded);
    Ok(content)
}

/// Where a path leads. The kernel follows it in one call and tells where it came to, while `realpath(3)` asks of each folder
/// whether it is a link: with eight NICs a thousand calls at each look for ports.
fn canonical(directory: &OwnedFd, root: &Path, path: &str) -> Result<PathBuf, Errno> {
    let place = openat(directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let told = readlinkat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), Vec::new());
    // Where no procfs is mounted.
    let Ok(name) = told else {
        return std::fs::canonicalize(root.join(path)).map_err(|error| from_io(&error));
    };
    let name = String::from_utf8(name.into_bytes()).map_err(|_| Errno::ILSEQ)?;
    // What went meanwhile has this behind its name.
    if name.ends_with(" (deleted)") {
        return Err(Errno::NOENT);
    }
    Ok(name.into())
}

fn open_file(directory: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    openat(directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// A recorded file. It can be opened even if the kernel refused to read it, as on the machine.
fn recorded(files: &Files, path: &str) -> Result<Recorded, Errno> {
    match files.read(path) {
        Ok(content) => Ok(Ok(content.into())),
        Err(Miss::Errno(errno)) => Ok(Err(Errno::from_raw_os_error(errno))),
        Err(miss) => Err(errno_of(miss)),
    }
}

fn errno_of(miss: Miss) -> Errno {
    match miss {
        Miss::Nothing => Errno::NOENT,
        Miss::Folder => Errno::ISDIR,
        Miss::NoFolder => Errno::NOTDIR,
        Miss::Circle => Errno::LOOP,
        Miss::Errno(errno) => Errno::from_raw_os_error(errno),
    }
}

fn from_io(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
