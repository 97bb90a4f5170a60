//! What a module says that it measures.

use super::Memory;
use super::map::{CMIS, Map, Quantity, SFF_8636, Span};
use rustix::io::Errno;

/// Reason of a module of another standard.
pub(super) const UNKNOWN: &str = "unknown_module";
/// Reason of a module that measures nothing.
pub(super) const NOTHING: &str = "no_monitors";

/// Why there is nothing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The memory could not be read.
    Errno(Errno),
    /// It is of another standard; the identifier of SFF-8024.
    Unknown(u8),
    /// The module has no monitors.
    Nothing,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// What can be read of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Where it is.
    pub(super) map: &'static Map,
    temperature: bool,
    voltage: bool,
    /// A bit for each lane.
    tx_bias: u8,
    tx_power: u8,
    rx_power: u8,
    /// Multiplier of the bias.
    pub(super) bias_scale: u8,
}

impl Plan {
    /// Asks the module.
    ///
    /// # Errors
    /// Why there is nothing to read.
    pub(super) fn of(memory: &mut impl Memory) -> Result<Self, Fault> {
        // Identifier (SFF-8024 table 4-1), revision, and for CMIS the memory model.
        let [identifier, revision, status] = read(memory, Span::new(0, 0, 3))?;
        let plan = match identifier {
            // QSFP, QSFP+, QSFP28
            0x0c | 0x0d | 0x11 => Self::sff_8636(memory, revision)?,
            // QSFP-DD, OSFP, DSFP, QSFP+ with CMIS, SFP-DD with CMIS, SFP+ with CMIS
            0x18 | 0x19 | 0x1b | 0x1e | 0x1f | 0x20 => Self::cmis(memory, status)?,
            other => return Err(Fault::Unknown(other)),
        };
        if plan.quantities().next().is_none() {
            return Err(Fault::Nothing);
        }
        Ok(plan)
    }

    fn sff_8636(memory: &mut impl Memory, revision: u8) -> Result<Self, Fault> {
        // Bits 7 to 4: device technology; 1010b and up are copper.
        let [technology] = read(memory, Span::new(0, 147, 1))?;
        // Diagnostic monitoring type.
        let [diagnostics] = read(memory, Span::new(0, 220, 1))?;
        let [high, low] = read(memory, Span::new(0, 22, 2))?;
        // Before revision 2.8 a module does not say whether it has monitors; ethtool takes a temperature for a yes.
        let measures = !matches!([high, low], [0, 0] | [0xff, 0xff]);
        let says = |bit: u8| measures && (revision < 0x08 || diagnostics & bit != 0);
        let optical = measures && technology >> 4 < 0b1010;
        let lanes = |has: bool| if has { 0b1111 } else { 0 };
        Ok(Self {
            map: &SFF_8636,
            temperature: says(0x20),
            voltage: says(0x10),
            tx_bias: lanes(optical),
            tx_power: lanes(optical && diagnostics & 0x04 != 0),
            rx_power: lanes(optical),
            bias_scale: 1,
        })
    }

    fn cmis(memory: &mut impl Memory, status: u8) -> Result<Self, Fault> {
        // Bit 7 of byte 2: flat memory, the page of identity alone, as a passive cable has.
        if status & 0x80 != 0 {
            return Err(Fault::Nothing);
        }
        // Lanes that are not there, cable assembly, media interface technology; 0Ah to 0Fh are copper.
        let [missing, _, technology] = read(memory, Span::new(0, 210, 3))?;
        // Table 8-47: supported monitors.
        let [module, lane] = read(memory, Span::new(1, 159, 2))?;
        let optical = !(0x0a..=0x0f).contains(&technology);
        let lanes = |bit: u8| if optical && lane & bit != 0 { !missing } else { 0 };
        // Bits 4 and 3 of the second byte: bias times 1, 2 or 4. Of a multiplier that is yet to be defined no value is right.
        let scale = (lane >> 3) & 0b11;
        Ok(Self {
            map: &CMIS,
            temperature: module & 0x01 != 0,
            voltage: module & 0x02 != 0,
            tx_bias: if scale == 0b11 { 0 } else { lanes(0x01) },
            tx_power: lanes(0x02),
            rx_power: lanes(0x04),
            bias_scale: 1 << scale,
        })
    }

    pub(super) fn has_lanes(self) -> bool {
        self.tx_bias | self.tx_power | self.rx_power != 0
    }

    /// What is read, in the order of the columns.
    pub(super) fn quantities(self) -> impl Iterator<Item = Quantity> {
        let module = [
            self.temperature.then_some(Quantity::Temperature),
            self.voltage.then_some(Quantity::Voltage),
        ];
        module
            .into_iter()
            .flatten()
            .chain(lanes(self.tx_bias).map(Quantity::TxBias))
            .chain(lanes(self.tx_power).map(Quantity::TxPower))
            .chain(lanes(self.rx_power).map(Quantity::RxPower))
    }
}

fn lanes(bits: u8) -> impl Iterator<Item = u8> {
    (0..8).filter(move |lane| bits >> lane & 1 != 0)
}

fn read<const N: usize>(memory: &mut impl Memory, span: Span) -> Result<[u8; N], Errno> {
    let mut content = [0; N];
    memory.read(span, &mut content)?;
    Ok(content)
}
