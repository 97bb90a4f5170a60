//! How the kernel that runs was built, as far as NICs reaching GPU memory by DMA-BUF goes.
//!
//! AMD's libraries hand GPU memory to a NIC as DMA-BUF only if both options are there (perftest and RCCL look for the same two,
//! in the same files): without `PCI_P2PDMA` `amdgpu_dma_buf_attach` in drivers/gpu/drm/amd allows no peer, and without
//! `DMABUF_MOVE_NOTIFY` what is pinned is moved to host memory first.

use crate::Tree;
use crate::kernel::release;
use flate2::read::GzDecoder;
use model::KernelBuild;
use std::io::Read as _;
use std::path::Path;

const NEEDED: [&str; 2] = ["CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"];
/// More than any kernel's options take.
const MOST: usize = 4 << 20;

/// The kernel whose procfs is at `procfs`; `None` if it does not tell its release. Its options are in its procfs if it was built
/// so, or where distributions put them.
pub(super) fn read(procfs: &Path) -> Option<KernelBuild> {
    let release = release(procfs)?;
    let lacks = options(procfs, &release).map(|options| lacking(&options));
    Some(KernelBuild { release, lacks })
}

fn options(procfs: &Path, release: &str) -> Option<String> {
    let whole = |root: &Path, path: &str| Tree::open(root).ok()?.whole(path, MOST).ok();
    if let Some(packed) = whole(procfs, "config.gz") {
        let mut options = String::new();
        let mut unpacked = GzDecoder::new(&packed[..]).take(MOST as u64);
        return unpacked.read_to_string(&mut options).is_ok().then_some(options);
    }
    let plain = whole("/boot".as_ref(), &format!("config-{release}"))
        .or_else(|| whole("/lib/modules".as_ref(), &format!("{release}/config")))?;
    String::from_utf8(plain).ok()
}

/// What of the needed is not built in.
fn lacking(options: &str) -> Vec<&'static str> {
    let is_set = |option: &&str| {
        options
            .lines()
            .any(|line| line.strip_prefix(*option) == Some("=y"))
    };
    NEEDED.into_iter().filter(|option| !is_set(option)).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // the tests write the files that are read
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write as _;

    const OPTIONS: &str =
        "# CONFIG_DMABUF_MOVE_NOTIFY is not set\nCONFIG_PCI_P2PDMA=y\nCONFIG_PCI_P2PDMA_TEST=m\n";

    #[test]
    fn what_is_not_set_is_lacking() {
        assert_eq!(lacking(OPTIONS), ["CONFIG_DMABUF_MOVE_NOTIFY"]);
        assert_eq!(
            lacking("CONFIG_DMABUF_MOVE_NOTIFY=y\nCONFIG_PCI_P2PDMA=y\n"),
            [""; 0]
        );
        assert_eq!(lacking("CONFIG_PCI_P2PDMA=n\n"), NEEDED);
    }

    #[test]
    fn a_kernel_tells_its_options_packed_or_not_at_all() {
        let procfs = tempfile::tempdir().unwrap();
        assert_eq!(read(procfs.path()), None);
        let folder = procfs.path().join("sys/kernel");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("osrelease"), "0.0.0-none\n").unwrap();
        let build = |lacks| {
            let release = "0.0.0-none".to_owned();
            Some(KernelBuild { release, lacks })
        };
        assert_eq!(read(procfs.path()), build(None));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(OPTIONS.as_bytes()).unwrap();
        fs::write(procfs.path().join("config.gz"), packed.finish().unwrap()).unwrap();
        assert_eq!(
            read(procfs.path()),
            build(Some(vec!["CONFIG_DMABUF_MOVE_NOTIFY"]))
        );
        fs::write(procfs.path().join("config.gz"), "no gzip").unwrap();
        assert_eq!(read(procfs.path()), build(None));
    }

    #[test]
    fn a_file_of_many_pages_is_read_whole_and_no_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("options"), OPTIONS.repeat(5_000)).unwrap();
        let tree = Tree::open(folder.path()).unwrap();
        assert_eq!(
            tree.whole("options", MOST).unwrap(),
            OPTIONS.repeat(5_000).as_bytes()
        );
        assert!(tree.whole("options", 100_000).is_err());
    }
}
