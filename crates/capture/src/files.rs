//! A tree of files, links and folders in memory: a sysfs as it was.

use std::collections::BTreeMap;

/// Links that are followed on the way to one file, as the kernel's `MAXSYMLINKS`.
const LINKS: usize = 40;

/// A tree. Paths are relative to its root, without a leading slash; the empty path is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    nodes: BTreeMap<Box<str>, Numbered>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered {
    inode: u64,
    node: Node,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder that may be empty. One that holds something need not be put in.
    Folder,
    /// A file and its content.
    File(Vec<u8>),
    /// A file that the kernel refused to read, and the errno by number.
    Fault(i32),
    /// A link, and where it leads, relative to the folder that it stands in.
    Link(String),
}

/// Why there is nothing to read at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Miss {
    /// Nothing is there.
    #[error("there is nothing")]
    Nothing,
    /// A folder stands where a file is wanted.
    #[error("it is a folder")]
    Folder,
    /// A file stands where a folder is wanted.
    #[error("it is no folder")]
    NoFolder,
    /// Links lead in a circle.
    #[error("its links lead in a circle")]
    Circle,
    /// The kernel's errno, when this was taken.
    #[error("the kernel refused with errno {0}")]
    Errno(i32),
}

impl Files {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `node` at `path`, with an inode above all before it. What was there before is replaced.
    pub fn put(&mut self, path: &str, node: Node) {
        let inode = self.nodes.len() as u64 + 1;
        self.nodes.insert(path.into(), Numbered { inode, node });
    }

    /// Puts all of `other` behind what is here already.
    pub fn append(&mut self, other: Self) {
        for (path, node) in other.into_ordered() {
            if !self.nodes.contains_key(path.as_ref()) {
                self.put(&path, node);
            }
        }
    }

    /// Every path with what stands there, in the order of inodes.
    pub fn ordered(&self) -> impl Iterator<Item = (&str, &Node)> {
        let mut all: Vec<_> = self.nodes.iter().collect();
        all.sort_by_key(|(_, numbered)| numbered.inode);
        all.into_iter().map(|(path, numbered)| (&**path, &numbered.node))
    }

    fn into_ordered(self) -> impl Iterator<Item = (Box<str>, Node)> {
        let mut all: Vec<_> = self.nodes.into_iter().collect();
        all.sort_by_key(|(_, numbered)| numbered.inode);
        all.into_iter().map(|(path, numbered)| (path, numbered.node))
    }

    /// True if nothing was put in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The content of the file at `path`, all links followed.
    ///
    /// # Errors
    /// Why there is none.
    pub fn read(&self, path: &str) -> Result<&[u8], Miss> {
        let path = self.resolve(path)?;
        match self.nodes.get(path.as_str()).map(|numbered| &numbered.node) {
            Some(Node::File(content)) => Ok(content),
            Some(Node::Fault(errno)) => Err(Miss::Errno(*errno)),
            _ => Err(Miss::Folder),
        }
    }

    /// Where `path` is when all links are followed. Links that lead out of the tree lead nowhere.
    ///
    /// # Errors
    /// Nothing is there, or links lead in a circle.
    pub fn resolve(&self, path: &str) -> Result<String, Miss> {
        let mut rest: Vec<&str> = path.rsplit('/').collect();
        let mut at = String::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part {
                "" | "." => continue,
                ".." => {
                    at = parent(&at).ok_or(Miss::Nothing)?.to_owned();
                    continue;
                }
                _ => {}
            }
            let next = join(&at, part);
            match self.nodes.get(next.as_str()).map(|numbered| &numbered.node) {
                Some(Node::Link(target)) => {
                    links += 1;
                    if links > LINKS {
                        return Err(Miss::Circle);
                    }
                    if target.starts_with('/') {
                        return Err(Miss::Nothing);
                    }
                    rest.extend(target.rsplit('/'));
                }
                Some(Node::File(_) | Node::Fault(_)) if !rest.is_empty() => return Err(Miss::NoFolder),
                Some(_) => at = next,
                None if self.is_folder(&next) => at = next,
                None => return Err(Miss::Nothing),
            }
        }
        Ok(at)
    }

    /// Where the link at `path` leads, as it was put in; `None` if it is no link. Links in the folder's path are followed.
    #[must_use]
    pub fn link(&self, path: &str) -> Option<&str> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let path = join(&self.resolve(folder).ok()?, name);
        match &self.nodes.get(path.as_str())?.node {
            Node::Link(target) => Some(target),
            _ => None,
        }
    }

    /// Names and inodes of what stands in the folder at `path`, by name.
    ///
    /// # Errors
    /// Nothing is there, or it is no folder.
    pub fn list(&self, path: &str) -> Result<Vec<(String, u64)>, Miss> {
        let path = self.resolve(path)?;
        if matches!(
            self.nodes.get(path.as_str()).map(|numbered| &numbered.node),
            Some(Node::File(_) | Node::Fault(_))
        ) {
            return Err(Miss::NoFolder);
        }
        let mut entries: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, inode) in self.below(&path) {
            let name = name.split('/').next().unwrap_or(name);
            let first = entries.entry(name).or_insert(inode);
            *first = inode.min(*first);
        }
        Ok(entries
            .into_iter()
            .map(|(name, inode)| (name.to_owned(), inode))
            .collect())
    }

    fn is_folder(&self, path: &str) -> bool {
        self.below(path).next().is_some()
    }

    /// What stands below the folder `path`, relative to it.
    fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        self.nodes
            .range::<str, _>((
                std::ops::Bound::Included(prefix.as_str()),
                std::ops::Bound::Unbounded,
            ))
            .map_while(move |(path, numbered)| {
                let name = path.strip_prefix(prefix.as_str())?;
                Some((name, numbered.inode))
            })
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The folder that `path` stands in; `None` above the root.
fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    Some(path.rsplit_once('/').map_or("", |(folder, _)| folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Files {
        let mut files = Files::new();
        files.put("devices/pci/nic/net/eth0/zeta", Node::File(b"1\n".to_vec()));
        files.put("devices/pci/nic/net/eth0/alpha", Node::File(b"2\n".to_vec()));
        files.put("devices/pci/nic/net/eth0/refused", Node::Fault(22));
        files.put(
            "class/net/eth0",
            Node::Link("../../devices/pci/nic/net/eth0".to_owned()),
        );
        files.put(
            "devices/pci/nic/net/eth0/device",
            Node::Link("../../../nic".to_owned()),
        );
        files.put("loop", Node::Link("loop".to_owned()));
        files.put("out", Node::Link("../../etc".to_owned()));
        files.put("class/infiniband", Node::Folder);
        files
    }

    #[test]
    fn links_are_followed_as_the_kernel_follows_them() {
        let files = tree();
        assert_eq!(files.read("class/net/eth0/zeta"), Ok(&b"1\n"[..]));
        assert_eq!(
            files.resolve("class/net/eth0/device"),
            Ok("devices/pci/nic".to_owned())
        );
        assert_eq!(files.read("class/net/eth0/refused"), Err(Miss::Errno(22)));
        assert_eq!(files.read("class/net/eth1/zeta"), Err(Miss::Nothing));
        assert_eq!(files.read("class/net"), Err(Miss::Folder));
        assert_eq!(files.read("class/net/eth0/zeta/x"), Err(Miss::NoFolder));
        assert_eq!(files.resolve("loop"), Err(Miss::Circle));
        assert_eq!(files.resolve("out"), Err(Miss::Nothing));
    }

    #[test]
    fn a_folder_lists_each_name_once_with_the_order_of_its_making() {
        let files = tree();
        let listed = files.list("class/net/eth0").unwrap();
        let names: Vec<_> = listed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["alpha", "device", "refused", "zeta"]);
        assert!(listed[0].1 > listed[3].1, "zeta was made first");
        assert_eq!(files.list("class/infiniband"), Ok(Vec::new()));
        assert_eq!(files.list("class/net/eth0/zeta"), Err(Miss::NoFolder));
        assert_eq!(files.list("class/ieee80211"), Err(Miss::Nothing));
        assert_eq!(files.list("").unwrap().len(), 4);
    }
}
