//! Who holds the queue pairs: the kernel its own, and each rank of the training job those of the NIC beside its GPU.

use crate::dcqcn::FLOWS;
use crate::value::whole;
use model::{Holder, Owner, Place, QueuePair, QueuePairKind, QueuePairState, QueuePairs};

const GSI: QueuePairKind = QueuePairKind(1);
const RC: QueuePairKind = QueuePairKind(2);
const RTS: QueuePairState = QueuePairState(3);
/// Process of the first rank.
const FIRST_PROCESS: u32 = 41_207;
/// Number of the first queue pair that a process made.
const FIRST_NUMBER: u32 = 0x1a3;
const CONTAINER: &str = "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d";
const POD: &str = "6f4922f4-5568-4a1f-a3c6-ad9d4e3a9b1e";

/// The queue pairs of the NIC of a rail: as many to the peer that it sends to as the model has flows, and as many to the one
/// that it receives from.
pub(crate) fn of(rail: usize) -> QueuePairs {
    let rank = u32::try_from(rail).expect("a server has few rails");
    let job = Owner::Process(Holder {
        process: FIRST_PROCESS + rank,
        name: Some("python3".to_owned()),
        place: Place {
            container: Some(CONTAINER.to_owned()),
            runtime: Some("containerd"),
            pod: Some(POD.to_owned()),
            job: None,
        },
        network_namespace: None,
    });
    let pair = |number, kind, remote, owner| QueuePair {
        number,
        port: Some(1),
        kind,
        state: RTS,
        remote,
        remote_address: None,
        owner,
    };
    let management = pair(1, GSI, None, Owner::Kernel("ib_core".to_owned()));
    let numbers = (FIRST_NUMBER..).take(2 * usize::try_from(whole(FLOWS)).expect("they are few"));
    // The job on the peer was started alike.
    let data = numbers.map(|number| pair(number, RC, Some(number), job.clone()));
    QueuePairs {
        seen: std::iter::once(management).chain(data).collect(),
        of: None,
    }
}
