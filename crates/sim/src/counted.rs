//! What a NIC counts.

use crate::fabric::LINE;

/// Priority of the RDMA traffic.
pub(crate) const RDMA_PRIORITY: usize = 3;
/// Priority of CNPs.
pub(crate) const CNP_PRIORITY: usize = 6;
/// Priority of everything else.
pub(crate) const OTHER_PRIORITY: usize = 0;

/// A PFC frame, bytes.
const PFC_FRAME: f64 = 64.0;
/// FCS, which the per-function counters leave out, bytes.
pub(crate) const FCS: f64 = 4.0;
/// Time for which one PFC frame holds a class at 400G: 65 535 quanta of 512 bit times, seconds.
const PFC_HOLD: f64 = 65_535.0 * 512.0 / (LINE * 8.0);

/// Frames of one priority in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    pub(crate) packets: f64,
    pub(crate) bytes: f64,
}

impl Frames {
    pub(crate) fn add(&mut self, packets: f64, size: f64) {
        self.packets += packets;
        self.bytes += packets * size;
    }

    /// Bytes where `header` of each frame are not counted.
    fn without(self, header: f64) -> f64 {
        self.bytes - header * self.packets
    }
}

/// PFC in one direction. A frame stops every priority that has PFC: they share one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    pub(crate) frames: f64,
    pub(crate) nanoseconds: f64,
    /// XOFF to XON.
    pub(crate) transitions: f64,
}

/// A peer that goes on pausing refreshes at half of that.
const PFC_REFRESH: f64 = PFC_HOLD / 2.0;

impl Pause {
    /// `seconds` of a pause that goes on.
    pub(crate) fn hold(&mut self, seconds: f64) {
        self.frames += seconds / PFC_REFRESH;
        self.nanoseconds += seconds * 1e9;
    }

    /// The XON that ends it.
    pub(crate) fn release(&mut self) {
        self.frames += 1.0;
        self.transitions += 1.0;
    }

    /// `episodes` of `seconds` together, each of one XOFF, its refreshes and one XON.
    pub(crate) fn add(&mut self, episodes: f64, seconds: f64) {
        let refreshes = if episodes > 0.0 {
            episodes * (seconds / episodes / PFC_HOLD).floor()
        } else {
            0.0
        };
        self.frames += 2.0 * episodes + refreshes;
        self.nanoseconds += seconds * 1e9;
        self.transitions += episodes;
    }
}

/// One direction of the port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    pub(crate) priority: [Frames; 8],
    pub(crate) pause: Pause,
    /// Write requests of RDMA.
    pub(crate) write_requests: f64,
}

impl Way {
    pub(crate) fn port_bytes(&self) -> f64 {
        self.priority.iter().map(|frames| frames.bytes).sum::<f64>() + self.pause.frames * PFC_FRAME
    }

    pub(crate) fn port_packets(&self) -> f64 {
        self.data_packets() + self.pause.frames
    }

    /// All but PFC frames.
    pub(crate) fn data_packets(&self) -> f64 {
        self.priority.iter().map(|frames| frames.packets).sum()
    }

    /// Bytes of RDMA, without `header` bytes of each packet.
    pub(crate) fn rdma_bytes(&self, header: f64) -> f64 {
        self.priority[RDMA_PRIORITY].without(header) + self.priority[CNP_PRIORITY].without(header)
    }

    pub(crate) fn rdma_packets(&self) -> f64 {
        self.priority[RDMA_PRIORITY].packets + self.priority[CNP_PRIORITY].packets
    }

    pub(crate) fn other_bytes(&self) -> f64 {
        self.priority[OTHER_PRIORITY].without(FCS)
    }
}

/// All that the driver, its firmware and its hardware count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) tx: Way,
    pub(crate) rx: Way,
    pub(crate) marked: f64,
    pub(crate) cnps_sent: f64,
    pub(crate) cnps_handled: f64,
    pub(crate) cnps_ignored: f64,
    pub(crate) ack_timeouts: f64,
    /// Packets that came after a gap, each answered by a NAK.
    pub(crate) out_of_sequence: f64,
    /// NAKs that came for packets that the peer missed.
    pub(crate) sequence_naks: f64,
    pub(crate) retransmits: f64,
    pub(crate) duplicates: f64,
    pub(crate) adaptive_retransmissions: f64,
    /// Packets that found no receive request, each answered by an RNR NAK.
    pub(crate) without_request: f64,
    /// Frames of [`OTHER_PRIORITY`], which has no pause, that found no buffer.
    pub(crate) rx_discards: Frames,
    pub(crate) tx_discards: f64,
    pub(crate) link_bits: f64,
    pub(crate) fec_corrected_bits: f64,
    pub(crate) fec_corrected_blocks: f64,
    pub(crate) fec_uncorrectable_blocks: f64,
    pub(crate) symbol_errors: f64,
    pub(crate) crc_errors: f64,
    pub(crate) icrc_errors: f64,
    pub(crate) over_threshold: f64,
    pub(crate) stalled_seconds: f64,
    pub(crate) link_down: f64,
}
