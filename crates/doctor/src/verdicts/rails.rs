//! The rails beside each other.

use super::{Confidence, Verdict, percent};
use crate::finding::Evidence;
use crate::table::traffic as table;
use crate::window::PortWindow;
use catalog::{Direction, Signal};

/// Mean use of the lines from which a node is busy.
const BUSY: f64 = 0.05;
/// The busiest rail carries so many times the mean.
const UNEVEN: f64 = 1.3;
/// Pause, and CNPs per packet, by which the fabric holds a rail back.
const HELD: f64 = 0.01;
const SLOWED: f64 = 1e-3;

struct Rail<'a> {
    window: &'a PortWindow,
    used: f64,
    bits: f64,
}

pub(super) fn look(windows: &[PortWindow], found: &mut Vec<Verdict>) {
    for direction in [Direction::Tx, Direction::Rx] {
        let known: Vec<_> = windows
            .iter()
            .filter(|window| window.rate(Signal::PacketsTxRdma).is_some())
            .filter_map(|window| {
                let used = window.utilization(direction)?;
                Some(Rail {
                    window,
                    used,
                    bits: used * window.speed?,
                })
            })
            .collect();
        if let Some(verdict) = compare(&known, direction) {
            // One direction is enough: a collective sends what it receives.
            found.push(verdict);
            return;
        }
    }
}

fn compare(rails: &[Rail<'_>], direction: Direction) -> Option<Verdict> {
    let number = rails.len() as f64;
    let mean = rails.iter().map(|rail| rail.bits).sum::<f64>() / number;
    let used = rails.iter().map(|rail| rail.used).sum::<f64>() / number;
    let busiest = rails.iter().reduce(|a, b| if b.bits > a.bits { b } else { a })?;
    if rails.len() < 2 || used < BUSY || busiest.bits < UNEVEN * mean {
        return None;
    }
    let quiet = || rails.iter().filter(|rail| rail.bits < mean);
    let held: Vec<_> = quiet().filter(|rail| is_held(rail.window)).collect();
    let says = |rail: &Rail<'_>| {
        Evidence::new(
            format!("{}, {}", rail.window.port.device, direction.as_str()),
            format!("{:.1} Gb/s", rail.bits / 1e9),
        )
    };
    let mut said: Vec<_> = rails.iter().map(says).collect();
    said.push(percent("mean use of the lines", used));
    said.push(Evidence::new(
        "quiet rails that are paused or receive CNPs",
        format!("{} of {}", held.len(), quiet().count()),
    ));
    // The source port that ECMP hashes comes from the queue pair: with few of them there is little to spread.
    let pairs = || rails.iter().filter_map(|rail| rail.window.flows);
    said.extend(pairs().min().zip(pairs().max()).map(|(least, most)| {
        Evidence::new("queue pairs of each rail's device", format!("{least} to {most}"))
    }));
    let otherwise: &[&str] = if held.is_empty() {
        &[
            "a job that places its traffic so: fewer ranks on some rails, or storage on one",
            "flows that collide in the fabric behind rails that only wait",
        ]
    } else {
        &[
            "flows that collide in the fabric: ECMP with few flows, elephant flows",
            "an incast to the peers of these rails",
        ]
    };
    Some(Verdict {
        check: &table::UNEVEN_RAILS,
        port: None,
        priority: None,
        confidence: if held.is_empty() {
            Confidence::Low
        } else {
            Confidence::Medium
        },
        evidence: said,
        otherwise,
    })
}

fn is_held(window: &PortWindow) -> bool {
    let paused = window
        .longest_pause(Direction::Rx)
        .is_some_and(|(_, ratio)| ratio >= HELD);
    let slowed = window
        .cnps_received()
        .zip(window.rate(Signal::PacketsTxRdma))
        .is_some_and(|(cnps, packets)| packets > 0.0 && cnps / packets >= SLOWED);
    paused || slowed
}
