//! What the optical module of a port measures of itself: of each lane the laser, and the light that arrives.

use crate::rail::Rail;
use catalog::{Index, Signal};

/// Lanes of a module of 400 Gb/s.
pub(crate) const LANES: u8 = 4;
/// Supply voltage, in microvolts.
const SUPPLY: u64 = 3_300_000;
/// Bias of a laser that is neither new nor old, in microamperes.
const BIAS: u64 = 7_500;
/// Light, in nanowatts: 0.5 dBm leave, and 1 dB is lost in two connectors.
const SENT: u64 = 1_122_000;
const RECEIVED: u64 = 891_000;
/// No two lanes are alike: each is so many hundredths weaker than the one before.
const UNEVENNESS: u64 = 3;
/// A bad cable lets so much less through: 9 dB, of which most modules bear less.
const BAD_CABLE: u64 = 8;

/// What the module measures now, in the catalogue's units; `None` of what it does not.
pub(crate) fn measured(rail: &Rail, signal: Signal, index: Option<Index>) -> Option<u64> {
    match (signal, index) {
        (Signal::ModuleVoltage, None) => Some(SUPPLY),
        (Signal::ModuleTxBias, Some(Index::Lane(lane))) => Some(weakened(BIAS, lane)),
        (Signal::ModuleTxPower, Some(Index::Lane(lane))) => Some(weakened(SENT, lane)),
        (Signal::ModuleRxPower, Some(Index::Lane(lane))) => Some(received(rail, lane)),
        _ => None,
    }
}

fn received(rail: &Rail, lane: u8) -> u64 {
    let lit = f64::from(LANES) * rail.speed;
    if !rail.carrier || f64::from(lane) >= lit {
        return 0;
    }
    weakened(RECEIVED, lane) / if rail.has_bad_cable() { BAD_CABLE } else { 1 }
}

fn weakened(amount: u64, lane: u8) -> u64 {
    amount * (100 - UNEVENNESS * u64::from(lane)) / 100
}
