//! What the dashboards have in common: choices, marks, limits, links, and the simulated servers on which they are tried.

use crate::grafana::{Annotation, Choice, Dashboard, Limits, Link, Scene, Texts, Variable, chosen};

const fn mlx5(scenario: &'static str, device: &'static str) -> Scene {
    Scene {
        scenario,
        nic: "mlx5",
        device,
    }
}

/// The scenarios of `docs/simulation.md`, each with the rail on which it happens.
pub(crate) const HEALTHY: Scene = mlx5("healthy", "mlx5_0");
pub(crate) const INCAST: Scene = mlx5("incast", "mlx5_3");
pub(crate) const STORM: Scene = mlx5("pfc-storm", "mlx5_5");
pub(crate) const SLOW_RECEIVER: Scene = mlx5("slow-receiver", "mlx5_6");
pub(crate) const FLAP: Scene = mlx5("link-flap", "mlx5_2");
pub(crate) const BAD_CABLE: Scene = mlx5("bad-cable", "mlx5_7");
pub(crate) const CNP_IGNORED: Scene = mlx5("cnp-ignored", "mlx5_3");
pub(crate) const RESET: Scene = mlx5("counter-reset", "mlx5_4");
pub(crate) const STUCK: Scene = mlx5("stuck-firmware", "mlx5_4");
/// A NIC that counts XOFF frames and no time of pause.
pub(crate) const FRAMES_ONLY: Scene = Scene {
    scenario: "incast",
    nic: "irdma",
    device: "irdma3",
};
/// A NIC that counts CNPs received in one.
pub(crate) const CNPS_IN_ONE: Scene = Scene {
    scenario: "incast",
    nic: "bnxt",
    device: "bnxt_re3",
};

/// Share of the time that a priority is paused: `sustained_pause` and `pfc_storm` of docs/events.md; below a hundredth it is
/// what PFC is for.
pub(crate) const PAUSE: Limits = Limits::From(&[(0.01, "yellow"), (0.1, "orange"), (0.95, "red")]);
/// Share of marked packets: a steady percent means that flows share a queue, ten that they are many.
pub(crate) const CE: Limits = Limits::From(&[(0.01, "yellow"), (0.1, "orange")]);
/// A line that is this full has no room for a burst.
pub(crate) const LINE: Limits = Limits::From(&[(0.9, "yellow"), (0.98, "orange")]);
/// What should not happen at all.
pub(crate) const ANY: Limits = Limits::From(&[(1e-9, "red")]);
/// What happens now and then, a second: `transport_errors` of docs/events.md.
pub(crate) const SOME: Limits = Limits::From(&[(1.0, "yellow"), (10.0, "orange")]);
/// Share of received CNPs that are not acted on: `cnp_ignored` of docs/events.md.
pub(crate) const IGNORED: Limits = Limits::From(&[(0.01, "orange"), (0.5, "red")]);
/// Share of a second that DMA waited: `pcie_backpressure` of docs/events.md.
pub(crate) const PCIE: Limits = Limits::From(&[(0.1, "yellow"), (0.3, "orange")]);

pub(crate) const SEVERITIES: Texts = &[
    ("critical", "critical", "red"),
    ("warning", "warning", "orange"),
    ("info", "info", "blue"),
];
pub(crate) const LINK_STATES: Texts = &[("0", "down", "red"), ("1", "up", "green")];
/// What [`events_by_severity`] gives.
pub(crate) const OPEN_STATES: Texts = &[
    ("0", "over", "transparent"),
    ("1", "info", "blue"),
    ("2", "warning", "orange"),
    ("3", "critical", "red"),
];
pub(crate) const FAULT_STATES: Texts = &[("0", "no", "green"), ("1", "yes", "red")];

/// Every dashboard has the same choices, so that each link can carry all of them. One node and one port are always chosen; where
/// a dashboard shows more than these, the choice is not shown, and is carried on all the same.
pub(crate) fn variables(node_shown: bool, device_shown: bool, priority_shown: bool) -> Vec<Variable> {
    let hide = |variable: Variable, shown: bool| if shown { variable } else { variable.hidden() };
    vec![
        Variable::shown(
            "cluster",
            "Cluster",
            "All of them where Prometheus does not add a label cluster.",
            Choice::Any("label_values(rocewatch_build_info, cluster)", Some(".*")),
        ),
        hide(
            Variable::shown(
                "node",
                "Node",
                "The server, by its label instance.",
                Choice::One("label_values(rocewatch_build_info{@cluster}, instance)"),
            ),
            node_shown,
        ),
        hide(
            Variable::shown(
                "device",
                "Device",
                "The RDMA device.",
                Choice::One("label_values(rocewatch_port_info{@node}, device)"),
            ),
            device_shown,
        ),
        hide(
            Variable::shown(
                "priority",
                "Priority",
                "The 802.1p priorities.",
                Choice::Any("label_values(rocewatch_pfc_enabled{@node}, priority)", Some(".*")),
            ),
            priority_shown,
        ),
    ]
}

/// The time during which something is open: storms and lost links on every panel; the rest where somebody asks for it, since what
/// is open for hours hides what is drawn.
///
/// `open` gives the events of a matcher, above 0 while they are open.
pub(crate) fn marks(
    open: impl Fn(&str) -> String,
    title: &'static str,
    text: &'static str,
) -> Vec<Annotation> {
    let mark = |name, color, shown, matcher: &str, scene| Annotation {
        name,
        color,
        shown,
        expr: chosen(&open(matcher)),
        title,
        text,
        scene,
    };
    vec![
        mark("Storms", "red", true, "event=\"pfc_storm\"", STORM),
        mark(
            "Lost links",
            "purple",
            true,
            "event=~\"link_down|device_gone\"",
            FLAP,
        ),
        mark(
            "Other critical events",
            "orange",
            false,
            "severity=\"critical\",event!~\"pfc_storm|link_down|device_gone\"",
            FLAP,
        ),
        mark("Warnings", "yellow", false, "severity=\"warning\"", SLOW_RECEIVER),
    ]
}

/// What is open on all that `selector` leaves.
pub(crate) fn port_marks(selector: &str) -> Vec<Annotation> {
    let open = |matcher: &str| format!("rocewatch_event_active{{{selector},{matcher}}} == 1");
    marks(
        open,
        "{{event}}",
        "{{instance}} {{device}} {{direction}} {{priority}}",
    )
}

/// When which event was open, coloured by its severity, 0 where it is over; of those that were open at all within the shown time.
pub(crate) fn events_by_severity(labels: &str, selector: &str) -> String {
    let of = |severity: &str, code: u8| {
        let active = format!("rocewatch_event_active{{{selector},severity=\"{severity}\"}}");
        format!("{code} * max by ({labels}) ({active} and max_over_time({active}[$__range] @ end()) > 0)")
    };
    [of("critical", 3), of("warning", 2), of("info", 1)].join(" or ")
}

/// To the port that labels `device` and `instance` of a series tell.
pub(crate) const TO_PORT: Link = Link {
    title: "This port",
    uid: "rocewatch-port",
    node: Some("labels.instance"),
    device: Some("labels.device"),
};

/// To the port that the label `device` tells, of the chosen node.
pub(crate) const TO_PORT_OF_NODE: Link = Link {
    node: None,
    ..TO_PORT
};

/// To the port that a row tells.
pub(crate) const ROW_TO_PORT: Link = Link {
    title: "This port",
    uid: "rocewatch-port",
    node: Some("Node"),
    device: Some("Port"),
};

/// To the port of the chosen node that a row tells.
pub(crate) const ROW_TO_PORT_OF_NODE: Link = Link {
    node: None,
    ..ROW_TO_PORT
};

/// To the node that a row tells.
pub(crate) const ROW_TO_NODE: Link = Link {
    title: "This node",
    uid: "rocewatch-node",
    node: Some("Node"),
    device: None,
};

/// All of them, in the order in which an operator goes through them.
pub(crate) fn all() -> [Dashboard; 5] {
    [
        crate::fabric::dashboard(),
        crate::node::dashboard(),
        crate::port::dashboard(),
        crate::incident::dashboard(),
        crate::agent::dashboard(),
    ]
}
