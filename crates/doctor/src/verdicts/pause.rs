//! Who holds whom.

use super::{Confidence, Verdict, per_second, percent};
use crate::finding::Evidence;
use crate::policy::Policy;
use crate::priority::{has, words};
use crate::table::traffic as table;
use crate::window::PortWindow;
use catalog::{Direction, Signal};
use std::time::Duration;

/// Share of the time from which pause that is received, or sent, is a fault.
const HELD: f64 = 0.05;
const HOLDS: f64 = 0.02;
/// One direction dominates if it is so many times the other.
const DOMINATES: f64 = 4.0;
/// Percent of the time that DMA waits on `PCIe`.
const STALLED: f64 = 10.0;
/// Errors of `PCIe` a second that a link in order does not make.
const ERRORS: f64 = 1.0;
/// A line that is used more than this is not held back.
const FULL: f64 = 0.9;
/// Pause on a lossy priority that is not nothing.
const ANY: f64 = 0.001;

pub(super) fn look(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    on_lossy(window, policy, found);
    let received = window.longest_pause(Direction::Rx);
    let sent = window.longest_pause(Direction::Tx);
    // Of one direction alone nobody can say that it dominates.
    let (Some(received), Some(sent)) = (received, sent) else {
        return;
    };
    if received.1 >= HELD && received.1 > DOMINATES * sent.1 {
        held(window, received, sent.1, found);
    }
    if sent.1 >= HOLDS && sent.1 > DOMINATES * received.1 {
        holds(window, sent, received.1, found);
    }
}

fn held(window: &PortWindow, (priority, received): (u8, f64), sent: f64, found: &mut Vec<Verdict>) {
    let mut said = vec![
        percent(format!("pause received on priority {priority}"), received),
        percent("pause sent", sent),
    ];
    let used = window.utilization(Direction::Tx);
    said.extend(used.map(|used| percent("line used, sent", used)));
    said.extend(episode(window, priority));
    said.extend(
        window
            .cnps_received()
            .map(|cnps| per_second("CNPs received", cnps)),
    );
    let confidence = Confidence::if_seen(used.is_some_and(|used| used < FULL));
    let verdict = Verdict::of(&table::FABRIC_PAUSES, window, confidence, said).on(priority);
    found.push(verdict.or(&[
        "a slow receiver on another node, whose pause comes through the switch",
        "a switch port without ECN, or with thresholds above those of PFC",
        "an incast of the job itself that is over soon",
    ]));
}

/// How long one pause lasts on average.
fn episode(window: &PortWindow, priority: u8) -> Option<Evidence> {
    let pauses = window.rate_of(Signal::PfcRxTransitions, priority)?;
    let time = window.rate_of(Signal::PfcRxPauseDuration, priority)?;
    let mean = Duration::try_from_secs_f64(time / pauses).ok()?;
    // Whole microseconds: the counters have no more.
    let mean = Duration::from_micros(u64::try_from(mean.as_micros()).ok()?);
    Some(Evidence::new("mean length of a pause", format!("{mean:?}")))
}

fn holds(window: &PortWindow, (priority, sent): (u8, f64), received: f64, found: &mut Vec<Verdict>) {
    let mut said = vec![
        percent(format!("pause sent on priority {priority}"), sent),
        percent("pause received", received),
    ];
    let stalled = [Signal::PcieStalledWritePercent, Signal::PcieStalledReadPercent]
        .into_iter()
        .filter_map(|signal| window.reading(signal))
        .reduce(f64::max);
    // The unit of these gauges is a share of 1 once it is in base units.
    let stalled = stalled.filter(|stalled| *stalled * 100.0 >= STALLED);
    said.extend(stalled.map(|stalled| percent("time that DMA waits on PCIe", stalled)));
    let short = window
        .sum_of_all(&[
            Signal::DropRxHostBuffer,
            Signal::DropRxNoBuffer,
            Signal::BufferRxOverThreshold,
            Signal::PcieOverflowDrops,
        ])
        .filter(|rate| *rate > 0.0);
    said.extend(
        short.map(|rate| per_second("frames without a buffer, or buffers over their threshold", rate)),
    );
    let errors = window
        .sum(&[
            Signal::PcieCorrectable,
            Signal::PcieSlotCorrectable,
            Signal::PcieRxErrors,
            Signal::PcieTxErrors,
        ])
        .filter(|rate| *rate >= ERRORS);
    said.extend(errors.map(|rate| per_second("PCIe errors that were corrected", rate)));
    let marked = window
        .sum_of_all(&[Signal::EcnRxMarkedByNic])
        .filter(|rate| *rate > 0.0);
    said.extend(marked.map(|rate| per_second("packets that this NIC marked, since its host was slow", rate)));
    said.extend(
        window
            .utilization(Direction::Rx)
            .map(|used| percent("line used, received", used)),
    );
    let confidence =
        Confidence::if_seen(stalled.is_some() || short.is_some() || errors.is_some() || marked.is_some());
    let verdict = Verdict::of(&table::HOST_IS_SLOW, window, confidence, said).on(priority);
    found.push(verdict.or(&[
        "PCIe, an IOMMU or memory that is short of bandwidth",
        "more queue pairs or memory regions than the NIC caches",
        "a GPU or CPU that hangs",
    ]));
}

fn on_lossy(window: &PortWindow, policy: &Policy, found: &mut Vec<Verdict>) {
    let Some(pfc) = window.pfc else { return };
    let meant = policy.lossless_of(Some(pfc)).unwrap_or(pfc);
    let ratio = |priority| {
        [Direction::Rx, Direction::Tx]
            .into_iter()
            .filter_map(|direction| window.pause(direction, priority))
            .reduce(f64::max)
    };
    let lossy = (0..8).filter(|priority| !has(meant, *priority));
    let paused = lossy
        .filter_map(|priority| Some((priority, ratio(priority)?)))
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    if let Some((priority, ratio)) = paused.filter(|(_, ratio)| *ratio >= ANY) {
        let mut said = vec![
            percent(format!("pause of priority {priority}"), ratio),
            Evidence::new("PFC", words(pfc)),
        ];
        let bytes = [Signal::BytesTx, Signal::BytesRx]
            .into_iter()
            .filter_map(|signal| window.rate_of(signal, priority))
            .reduce(|a, b| a + b);
        said.extend(bytes.map(|bytes| {
            Evidence::new(
                format!("bytes on priority {priority}"),
                format!("{:.3} GB/s", bytes / 1e9),
            )
        }));
        let verdict = Verdict::of(&table::PAUSE_ON_LOSSY, window, Confidence::High, said).on(priority);
        found.push(verdict.or(&["a plan with several lossless priorities that the policy does not name"]));
    }
}
