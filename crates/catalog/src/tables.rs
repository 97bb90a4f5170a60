//! The tables that `build.rs` makes of the files under `data/`.

use crate::{
    Direction, Driver, Entry, Fact, Family, FamilyKind, From, Index, Kind, Origin, Per, SourceKind, Status,
    Unit, Width,
};

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
