//! Each scenario of the simulated server opens its own events, and no other does.

use crate::server::{SECOND, Server, setup};
use catalog::Direction::{self, Rx, Tx};
use signals::detect::EventKind::{self, *};
use signals::detect::PortFacts;
use sim::{Nic, PortCount, Scenario, Setup, Speed};
use std::time::Duration;

/// By its peers, each port ought to have 400 Gbit/s.
const FACTS: PortFacts = PortFacts {
    uptime: None,
    usual_speed: Some(400e9),
    known_up: false,
    stalled: None,
    gone: false,
};

type Kind = (Option<usize>, EventKind, Option<Direction>);

/// Everything that opens in a scenario on a server that begins with it.
fn expected(scenario: Scenario, nic: Nic) -> Vec<Kind> {
    let port = |rail, kind| (Some(rail), kind, None);
    let of = |rail, kind, direction| (Some(rail), kind, Some(direction));
    let mut events = match scenario {
        // The incast is nothing unusual to a port that has known nothing else.
        Scenario::Healthy | Scenario::Incast => vec![],
        Scenario::PfcStorm => vec![of(5, PfcStorm, Rx)],
        Scenario::SlowReceiver => vec![of(6, SustainedPause, Tx), port(6, PcieBackpressure)],
        Scenario::LinkFlap => vec![port(2, LinkDown), port(2, LinkFlap)],
        Scenario::BadCable => vec![port(7, TransportErrors), port(7, FecDegraded)],
        Scenario::EcnOff => vec![of(3, PauseWithoutCe, Rx)],
        Scenario::CnpIgnored => vec![of(3, CnpIgnored, Rx)],
        Scenario::PfcAllPriorities => vec![of(3, PauseOnLossyPriority, Rx)],
        Scenario::RailImbalance => vec![(None, RailImbalance, Some(Rx)), (None, RailImbalance, Some(Tx))],
        Scenario::SpeedDowngrade => vec![port(1, SpeedBelowUsual)],
        Scenario::CounterReset => vec![port(4, LinkDown), port(4, CounterReset)],
        Scenario::StuckFirmware => vec![port(4, SourceStalled)],
        Scenario::Tour => vec![
            port(2, LinkDown),
            of(5, PfcStorm, Rx),
            of(6, SustainedPause, Tx),
            of(6, CnpSpike, Tx),
        ],
    };
    events.retain(|(_, kind, _)| can_tell(nic, *kind));
    events
}

/// What a NIC counts decides what can be known of it.
fn can_tell(nic: Nic, kind: EventKind) -> bool {
    match kind {
        // Frames without time bound a pause from above alone.
        SustainedPause | PauseWithoutCe => nic != Nic::Irdma,
        PcieBackpressure => nic == Nic::Mlx5,
        CnpIgnored => matches!(nic, Nic::Mlx5 | Nic::Irdma),
        // No DCB.
        PauseOnLossyPriority => nic != Nic::Ionic,
        _ => true,
    }
}

fn sorted(mut kinds: Vec<Kind>) -> Vec<Kind> {
    kinds.sort_by_key(|(rail, kind, direction)| (*rail, *kind, direction.map(Direction::as_str)));
    kinds
}

#[track_caller]
fn check(scenario: Scenario, nic: Nic) {
    let mut server = Server::new(setup(scenario, nic), FACTS);
    // Every fault has its turn within a minute; the tour takes two for all.
    server.play(if scenario == Scenario::Tour { 130 } else { 70 });
    let wanted = sorted(expected(scenario, nic));
    assert_eq!(server.kinds(), wanted, "{scenario} on {nic}: {:#?}", server.told);
}

#[test]
fn every_scenario_opens_its_own_events_alone() {
    for scenario in Scenario::ALL {
        check(scenario, Nic::Mlx5);
    }
}

#[test]
fn other_nics_tell_what_they_count() {
    for nic in [Nic::Bnxt, Nic::Irdma, Nic::Ionic] {
        for scenario in Scenario::ALL {
            check(scenario, nic);
        }
    }
}

/// A storm is open within a second of its onset, and has the right times to a sample.
#[test]
fn a_storm_is_open_within_a_second_of_its_onset() {
    for (nic, latest, sample) in [
        (Nic::Mlx5, SECOND, SECOND / 5),
        (Nic::Irdma, SECOND, SECOND / 5),
        (Nic::Ionic, SECOND, SECOND / 5),
        // Its driver refreshes its counters once a second.
        (Nic::Bnxt, 2 * SECOND, SECOND),
    ] {
        let mut server = Server::new(setup(Scenario::PfcStorm, nic), FACTS);
        server.play(100);
        let opened: Vec<_> = server.opened().collect();
        let closed: Vec<_> = server.closed().collect();
        assert_eq!((opened.len(), closed.len()), (2, 2), "{nic}: {:#?}", server.told);
        for (minute, ((told, _), (_, event))) in (0..).zip(opened.iter().zip(&closed)) {
            let (onset, end) = ((60 * minute + 10) * SECOND, (60 * minute + 30) * SECOND);
            assert!(told.at - onset <= latest, "{nic}: {told:?}");
            assert!(event.began.abs_diff(onset) <= sample, "{nic}: {event:?}");
            let ended = event.ended.expect("it has ended");
            assert!(ended.abs_diff(end) <= sample, "{nic}: {event:?}");
        }
    }
}

/// A server that has been well for two minutes, and to which the scenario then happens, tells the same and what is unusual.
#[test]
fn what_befalls_a_healthy_server_is_unusual_to_it() {
    let spike = |rail, direction| (Some(rail), CnpSpike, Some(direction));
    for (scenario, unusual) in [
        (Scenario::Healthy, vec![]),
        (Scenario::Incast, vec![spike(3, Tx)]),
        (Scenario::PfcStorm, vec![]),
        // The switch marks what waits for a host, or a link, that takes less than the line.
        (Scenario::SlowReceiver, vec![spike(6, Tx)]),
        (Scenario::SpeedDowngrade, vec![spike(1, Tx)]),
        (Scenario::LinkFlap, vec![]),
        (Scenario::BadCable, vec![]),
        (Scenario::EcnOff, vec![]),
        (Scenario::CnpIgnored, vec![spike(3, Rx), spike(3, Tx)]),
        (Scenario::RailImbalance, vec![]),
        (Scenario::CounterReset, vec![]),
        (Scenario::StuckFirmware, vec![]),
    ] {
        // Without a word of its peers: a port knows its own usual speed.
        let mut server = Server::new(setup(Scenario::Healthy, Nic::Mlx5), PortFacts::default());
        server.play(120);
        server.turn_to(setup(scenario, Nic::Mlx5));
        server.play(70);
        let mut wanted = expected(scenario, Nic::Mlx5);
        wanted.extend(unusual);
        assert_eq!(server.kinds(), sorted(wanted), "{scenario}: {:#?}", server.told);
    }
}

#[test]
fn a_healthy_hour_is_silent() {
    let mut server = Server::new(small(Scenario::Healthy, 1), FACTS);
    server.play(3_600);
    assert!(server.told.is_empty(), "{:#?}", server.told);
}

#[test]
#[ignore = "takes minutes: cargo test --release -p rocewatch-signals --test detect -- --ignored"]
fn a_healthy_night_of_eight_ports_is_silent_on_every_nic() {
    for nic in Nic::ALL {
        let mut server = Server::new(setup(Scenario::Healthy, nic), FACTS);
        server.play(8 * 3_600);
        assert!(server.told.is_empty(), "{nic}: {:#?}", server.told);
    }
}

/// Rows of five seconds: what takes longer than its cadence does not become a fault.
#[test]
fn a_healthy_week_is_silent() {
    let mut server = Server::new(small(Scenario::Healthy, Speed::MOST), FACTS);
    server.play_by(7 * 24 * 3_600, Duration::from_secs(5));
    assert!(server.told.is_empty(), "{:#?}", server.told);
}

/// A server of two ports, at a speed.
fn small(scenario: Scenario, speed: u32) -> Setup {
    Setup {
        ports: PortCount::new(2).expect("a possible number"),
        speed: Speed::new(speed).expect("a possible speed"),
        ..setup(scenario, Nic::Mlx5)
    }
}
