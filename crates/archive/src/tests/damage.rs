//! Bytes that are not what they were.

use super::*;
use crate::damage::{Cause, OpenError};
use crate::limits::State;

fn lasting() -> Limits {
    Limits {
        recorded: Duration::from_secs(3_600),
        ..small()
    }
}

/// Segments, with and without an index, and a log.
fn written() -> Memory {
    let disk = Memory::new();
    let limits = Limits {
        recorded: Duration::from_secs(28 * 9),
        ..lasting()
    };
    Server::start(&disk, limits, 0).play_for(33);
    disk
}

/// Rows of each track that are gone.
fn missing(archive: &Archive) -> Vec<usize> {
    seconds(archive).iter().map(|track| 33 - track.len()).collect()
}

/// What is told when the archive is opened and when all of it is read.
fn told(archive: &Archive) -> usize {
    let mut told = archive.damages().len();
    for number in 0..PORTS {
        for (source, _) in READS {
            let port = port(number).id;
            let query = Query {
                port: &port,
                source,
                columns: &[],
                from: i64::MIN,
                to: i64::MAX,
            };
            told += archive.rows(&query).damages.len();
        }
    }
    told
}

#[test]
fn a_flipped_bit_costs_one_block_and_is_told() {
    let disk = written();
    let mut noise = 1_u64;
    for (name, bytes) in disk.files() {
        for place in 0..400 {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(noise >> 33).expect("31 bits") % bytes.len();
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (place % 8);
            let damaged = disk.copy();
            damaged.put(&name, flipped);
            let archive = open(&damaged);
            let missing = missing(&archive);
            let hit: Vec<_> = missing.iter().filter(|rows| **rows > 0).collect();
            if is_log(&name) {
                // A frame has one second of every track.
                assert!(hit.iter().all(|rows| **rows == 1), "{name} at {at}: {missing:?}");
            } else {
                assert!(
                    hit.len() <= 1 && hit.iter().all(|rows| **rows <= 6),
                    "{name} at {at}: {missing:?}"
                );
            }
            assert!(
                hit.is_empty() || told(&archive) > 0,
                "{name} at {at}: nothing is told of {missing:?}"
            );
        }
    }
}

/// Every value that is read is held against what it should be: nothing wrong is given for right.
#[test]
fn a_damaged_byte_at_a_thousand_places_costs_what_was_there_and_no_value_is_wrong() {
    let disk = written();
    let files = disk.files();
    let mut noise = 7_u64;
    let mut random = move || {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(noise >> 33).expect("31 bits")
    };
    let mut untouched = 0;
    for _ in 0..1_000 {
        let (name, bytes) = &files[random() % files.len()];
        let at = random() % bytes.len();
        let mut damaged = bytes.clone();
        damaged[at] ^= u8::try_from(1 + random() % 255).expect("a byte");
        let copy = disk.copy();
        copy.put(name, damaged);
        let archive = open(&copy);
        let missing: usize = missing(&archive).iter().sum();
        assert!(
            missing == 0 || told(&archive) > 0,
            "{name} at {at}: nothing is told"
        );
        untouched += usize::from(missing == 0);
    }
    // Damage that hit nothing but a copy of a definition, an index or a seal that is there twice.
    assert!(untouched < 700, "{untouched}");
}

#[test]
fn a_writer_starts_on_damage_tells_of_it_and_goes_on() {
    let disk = written();
    for (name, bytes) in disk.files() {
        for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x41;
            let damaged = disk.copy();
            damaged.put(&name, flipped);
            let before = seconds(&open(&damaged));
            let mut server = Server::start(&damaged, lasting(), 100);
            assert_eq!(server.play_for(6).state, State::Writing);
            if is_log(&name) {
                let told = server.writer.take_damages();
                assert!(!told.is_empty() && told[0].file == name, "{name} at {at}");
            }
            for (before, after) in before.iter().zip(seconds(&open(&damaged))) {
                let expected: BTreeSet<u64> = before.iter().copied().chain(100..106).collect();
                assert_eq!(after, expected, "{name} at {at}");
            }
        }
    }
}

#[test]
fn damage_is_told_apart_from_what_a_crash_leaves() {
    let disk = written();
    let (name, mut bytes) = disk
        .files()
        .into_iter()
        .find(|(name, _)| is_log(name))
        .expect("a log");
    bytes.extend_from_slice(&[0xf5, b'R', b'W', 1, 2]);
    disk.put(&name, bytes);
    let archive = open(&disk);
    let causes: Vec<_> = archive.damages().iter().map(|damage| damage.cause).collect();
    assert_eq!(causes, [Cause::Torn]);
    assert!(archive.damages()[0].to_string().starts_with("rows/"));
    assert_eq!(common(&archive).len(), 33);
}

#[test]
fn garbage_in_place_of_any_file_is_no_obstacle() {
    let disk = written();
    for (name, bytes) in disk.files() {
        for garbage in [
            Vec::new(),
            vec![0; 5_000],
            b"not an archive".to_vec(),
            bytes.iter().rev().copied().collect(),
        ] {
            let damaged = disk.copy();
            damaged.put(&name, garbage);
            let _ = missing(&open(&damaged));
            let mut server = Server::start(&damaged, lasting(), 100);
            assert_eq!(server.play_for(6).state, State::Writing);
        }
    }
}

#[test]
fn a_file_that_the_disk_does_not_give_costs_itself() {
    let disk = written();
    for (name, bytes) in disk.files() {
        let damaged = disk.copy();
        damaged.damage(&name);
        let archive = open(&damaged);
        let left = common(&archive);
        assert!(left.len() >= 33 - 20, "{name}");
        assert!(
            archive.damages().iter().any(|damage| damage.file == name),
            "{name}"
        );
        let mut server = Server::start(&damaged, lasting(), 100);
        assert_eq!(server.play_for(6).state, State::Writing);
        assert!(
            server
                .writer
                .take_damages()
                .iter()
                .any(|damage| damage.file == name),
            "{name}"
        );
        assert_eq!(
            common(&open(&damaged)),
            left.into_iter().chain(100..106).collect(),
            "{name}"
        );
        let kept = damaged.files().into_iter().find(|(known, _)| *known == name);
        assert_eq!(
            kept.map(|(_, bytes)| bytes),
            Some(bytes),
            "{name} is left as it is"
        );
    }
}

#[test]
fn files_of_another_format_are_refused_by_name() {
    let disk = Memory::new();
    let mut frame = Vec::new();
    crate::frame::put(&mut frame, crate::frame::Kind::Rows, b"meta", b"");
    frame[3] = 9;
    let checksum = crc32fast::hash(&frame[..20]);
    frame[20..24].copy_from_slice(&checksum.to_le_bytes());
    disk.put("rows/00000000000000000001.log", frame);
    let refused = [
        Archive::on(&disk).err(),
        Writer::on(Arc::new(disk.clone()), small(), EPOCH, now(0)).err(),
    ];
    for error in refused {
        assert!(
            matches!(error, Some(OpenError::Format { found: 9, .. })),
            "{error:?}"
        );
    }
}

#[test]
fn any_file_can_be_read_by_itself() {
    let disk = written();
    let mut found = 0;
    for (name, bytes) in disk.files() {
        let archive = Archive::from_bytes(&name, bytes).expect("it is of this format");
        assert_eq!(archive.damages(), []);
        found += common(&archive).len();
    }
    assert_eq!(found, 33);
}

mod any {
    use super::*;
    use proptest::prelude::*;

    /// Opens whatever it is and reads all that is in it.
    fn read(bytes: Vec<u8>) {
        let Ok(archive) = Archive::from_bytes("any", bytes) else {
            return;
        };
        for span in archive.tracks() {
            let query = Query {
                port: &span.track.port,
                source: span.track.source,
                columns: &[],
                from: i64::MIN,
                to: i64::MAX,
            };
            let _ = archive.rows(&query);
            let _ = archive.stepped(&query, std::num::NonZeroU64::new(SECOND).expect("not zero"));
        }
        let _ = archive.records(i64::MIN, i64::MAX);
    }

    proptest! {
        #[test]
        fn bytes_are_a_file_or_refused(bytes: Vec<u8>) {
            read(bytes);
        }

        /// Checksums that fit, around contents that were changed.
        #[test]
        fn frames_of_anything_are_read_or_refused(
            frames in proptest::collection::vec((0_u8..9, any::<Vec<u8>>(), any::<Vec<u8>>()), 0..4),
        ) {
            let mut file = Vec::new();
            for (kind, meta, body) in frames {
                let kind = crate::frame::Kind::from_number(kind).unwrap_or(crate::frame::Kind::Rows);
                crate::frame::put(&mut file, kind, &meta, &body);
            }
            read(file);
        }

        #[test]
        fn changed_frames_with_fitting_checksums_are_read_or_refused(place: prop::sample::Index, at: prop::sample::Index, flip: u8) {
            for (_, bytes) in written_once() {
                let entries = crate::contents::Contents::scan("", bytes).expect("this format").entries;
                let mut file = Vec::new();
                let changed = place.index(entries.len());
                for (number, entry) in entries.iter().enumerate() {
                    let (mut meta, mut body) = (entry.meta.clone(), bytes[entry.body()].to_vec());
                    let length = meta.len() + body.len();
                    if number == changed && length > 0 {
                        let at = at.index(length);
                        match at.checked_sub(meta.len()) {
                            Some(at) => body[at] ^= flip,
                            None => meta[at] ^= flip,
                        }
                    }
                    crate::frame::put(&mut file, entry.kind, &meta, &body);
                }
                read(file);
            }
        }
    }

    fn written_once() -> &'static [(String, Vec<u8>)] {
        static FILES: std::sync::OnceLock<Vec<(String, Vec<u8>)>> = std::sync::OnceLock::new();
        FILES.get_or_init(|| written().files())
    }
}
