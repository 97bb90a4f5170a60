//! One port in depth.

use crate::common::{
    ANY, BAD_CABLE, CE, CNP_IGNORED, CNPS_IN_ONE, FLAP, FRAMES_ONLY, HEALTHY, INCAST, LINE, LINK_STATES,
    OPEN_STATES, PAUSE, PCIE, SLOW_RECEIVER, SOME, STORM, events_by_severity, port_marks, variables,
};
use crate::grafana::{Column, DBM, Dashboard, Limits, Order, Panel, Row, Scene, View};

pub(crate) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "rocewatch-port",
        title: "RoCE port",
        description: "One port in depth: pause by priority, bursts, DCQCN at work, errors, FEC, PCIe, and the course of its link.",
        from: "now-30m",
        variables: variables(true, true, true),
        annotations: port_marks("@port"),
        rows: vec![
            head(),
            pause(),
            bursts(),
            dcqcn(),
            errors(),
            link(),
            optics(),
            host(),
        ],
    }
}

fn lines(title: &'static str, description: &'static str, scene: Scene) -> Panel {
    Panel::new(View::Lines, title, description, scene)
}

/// The rates of those series that moved at all within the shown time: most kinds of errors never do.
fn moved(series: &str) -> String {
    format!("rate({series}[$__rate_interval]) and increase({series}[$__range] @ end()) > 0")
}

fn head() -> Row {
    let number = |title, description, scene| Panel::new(View::Number, title, description, scene).size(3, 4);
    let used = |direction: &str| {
        format!(
            "(rate(rocewatch_port_bytes_total{{@port,direction=\"{direction}\"}}[$__rate_interval]) + 20 * rate(rocewatch_port_packets_total{{@port,direction=\"{direction}\"}}[$__rate_interval])) / ignoring (direction) rocewatch_port_speed_bytes_per_second{{@port}}"
        )
    };
    let paused = |direction: &str| {
        format!(
            "max(rate(rocewatch_pfc_pause_seconds_total{{@priority,direction=\"{direction}\"}}[$__rate_interval]))"
        )
    };
    Row {
        title: "The port, lately",
        panels: vec![
            number("Link", "Carrier of the netdev.", HEALTHY)
                .unit("none")
                .limits(Limits::From(&[(-1.0, "red"), (1.0, "green")]))
                .texts(LINK_STATES)
                .query("rocewatch_port_up{@port}", "link"),
            number("Speed", "Negotiated, one direction. Less than usual most often is a lost lane.", HEALTHY)
                .unit("bps")
                .query("8 * rocewatch_port_speed_bytes_per_second{@port}", "speed"),
            number("Receiving", "Share of the line in use.", HEALTHY)
                .share()
                .limits(LINE)
                .query(used("rx"), "rx"),
            number("Sending", "Share of the line in use.", HEALTHY)
                .share()
                .limits(LINE)
                .query(used("tx"), "tx"),
            number("Paused by the fabric", "Share of the time that the most paused priority may not send.", STORM)
                .share()
                .limits(PAUSE)
                .query(paused("rx"), "paused"),
            number("Pauses the switch", "Share of the time that it forbids the switch to send.", SLOW_RECEIVER)
                .share()
                .limits(PAUSE)
                .query(paused("tx"), "pauses"),
            number("CE fraction", "Share of the packets received that a switch marked.", INCAST)
                .share()
                .limits(CE)
                .query("rate(rocewatch_ecn_marked_packets_total{@port}[$__rate_interval]) / ignoring (direction) (rate(rocewatch_rdma_packets_total{@port,direction=\"rx\"}[$__rate_interval]) > 0)", "marked"),
            number("Hottest sensor", "Of the NIC and its module.", HEALTHY)
                .unit("celsius")
                .limits(Limits::From(&[(75.0, "yellow"), (95.0, "red")]))
                .query("max(rocewatch_temperature_celsius{@port})", "temperature"),
            Panel::new(
                View::Table(
                    vec![
                        Column::new("device", "Device"),
                        Column::new("netdev", "Netdev"),
                        Column::new("rail", "Rail"),
                        Column::new("driver", "Driver"),
                        Column::new("firmware", "Firmware"),
                        Column::new("board", "Board"),
                        Column::new("pci", "PCI address"),
                        Column::new("numa_node", "NUMA node"),
                        Column::new("gpu", "GPU beside it"),
                    ],
                    Order::Up("Device"),
                ),
                "What it is",
                "Labels of rocewatch_port_info; two rows where they changed in the shown time. Empty is what the host cannot tell.",
                HEALTHY,
            )
            .size(24, 4)
            .unit("none")
            .now("last_over_time(rocewatch_port_info{@port}[$__range])", "{{device}}"),
            Panel::new(View::Timeline, "Course of the link", "Carrier as each scrape found it; what is shorter is in the lost carriers below.", FLAP)
                .size(12, 5)
                .unit("none")
                .limits(ANY)
                .texts(LINK_STATES)
                .query("rocewatch_port_up{@port}", "link"),
            Panel::new(View::Timeline, "Events", "What the agent found, and when it was open.", STORM)
                .size(12, 5)
                .unit("none")
                .limits(ANY)
                .texts(OPEN_STATES)
                .none("No event was open.")
                .query(events_by_severity("event, direction", "@priority"), "{{event}} {{direction}}"),
        ],
    }
}

fn pause() -> Row {
    let rate = |metric: &str, direction: &str| {
        format!("rate({metric}{{@priority,direction=\"{direction}\"}}[$__rate_interval])")
    };
    let share = |title, description, scene| lines(title, description, scene).size(6, 8).share().limits(PAUSE);
    Row {
        title: "Pause by priority, both ways",
        panels: vec![
            share("Received: time", "Share of the time that the priority may not send. ≤: the most that it can have been, on NICs that count frames and no time.", STORM)
                .query(rate("rocewatch_pfc_pause_seconds_total", "rx"), "priority {{priority}}")
                .query_on(FRAMES_ONLY, "rocewatch_pfc_pause_upper_bound_ratio{@priority,direction=\"rx\"}", "≤ priority {{priority}}"),
            share("Sent: time", "Share of the time that the switch may not send on the priority, because this node told it so.", SLOW_RECEIVER)
                .query(rate("rocewatch_pfc_pause_seconds_total", "tx"), "priority {{priority}}"),
            lines("Frames", "PFC frames that name the priority, XOFF and XON; XOFF alone where the NIC counts them apart.", INCAST)
                .size(6, 8)
                .unit("pps")
                .query("rate(rocewatch_pfc_frames_total{@priority}[$__rate_interval])", "{{direction}} priority {{priority}}")
                .query_on(FRAMES_ONLY, "rate(rocewatch_pfc_xoff_frames_total{@priority}[$__rate_interval])", "XOFF {{direction}} priority {{priority}}"),
            lines("Mean length of a pause", "Paused time by the number of pauses that ended. Microseconds are PFC as it should be; milliseconds are a switch without ECN, or a slow host; a storm ends rarely, and shows when it does.", INCAST)
                .size(6, 8)
                .unit("s")
                .limits(Limits::From(&[(0.001, "yellow"), (0.1, "red")]))
                .query(
                    format!("{} / ({} > 0)", rate("rocewatch_pfc_pause_seconds_total", "rx"), rate("rocewatch_pfc_pause_transitions_total", "rx")),
                    "{{direction}} priority {{priority}}",
                ),
        ],
    }
}

fn bursts() -> Row {
    let heatmap = |title, description, scene| {
        Panel::new(View::Heatmap, title, description, scene)
            .size(6, 8)
            .unit("cps")
    };
    let buckets = |metric: &str, direction: &str, of: &str| {
        format!("sum by (le) (rate({metric}_bucket{{{of},direction=\"{direction}\"}}[$__rate_interval]))")
    };
    let utilization = |direction| buckets("rocewatch_sampled_utilization_ratio", direction, "@port");
    let quantile = |of: &str, direction| format!("histogram_quantile({of}, {})", utilization(direction));
    let mean = |direction: &str| {
        let rate = |part| {
            format!(
                "rate(rocewatch_sampled_utilization_ratio_{part}{{@port,direction=\"{direction}\"}}[$__rate_interval])"
            )
        };
        format!("{} / {}", rate("sum"), rate("count"))
    };
    Row {
        title: "Bursts",
        panels: vec![
            heatmap("Utilization, received", "Every sample of a fraction of a second, by how full the line was in it; samples a second.", HEALTHY)
                .query(utilization("rx"), "{{le}}"),
            heatmap("Utilization, sent", "The same for the other direction.", HEALTHY).query(utilization("tx"), "{{le}}"),
            heatmap("Pause received", "Every sample of the priorities with PFC, by the share of it that was paused. The lowest band is no pause at all.", STORM)
                .query(buckets("rocewatch_sampled_pause_ratio", "rx", "@priority"), "{{le}}"),
            lines("Mean and bursts", "Mean of the samples, and the fullest hundredth of them. Far apart: a bursty job, of which a mean tells little.", HEALTHY)
                .size(6, 8)
                .share()
                .limits(LINE)
                .query(mean("rx"), "mean rx")
                .query(mean("tx"), "mean tx")
                .query(quantile("0.99", "rx"), "99 % rx")
                .query(quantile("0.99", "tx"), "99 % tx"),
        ],
    }
}

fn dcqcn() -> Row {
    let rate = |metric: &str| format!("rate({metric}{{@port}}[$__rate_interval])");
    Row {
        title: "DCQCN at work: marks → notifications → rate",
        panels: vec![
            lines("1. Marked on the way here", "Packets with Congestion Experienced (left), and the CNPs by which this node tells their senders (right, dashed). Fewer CNPs than marks are right: one in 50 µs for each flow. No CNP at all is not.", INCAST)
                .unit("pps")
                .query(rate("rocewatch_ecn_marked_packets_total"), "marked")
                .query(rate("rocewatch_cnp_sent_total"), "CNPs sent")
                .right("B", "pps", "CNPs sent"),
            lines("2. Told to slow down", "CNPs that this node receives for what it sends: handled ones make it slow down, ignored ones do not.", INCAST)
                .unit("pps")
                .query(rate("rocewatch_cnp_handled_total"), "handled")
                .query_on(CNP_IGNORED, rate("rocewatch_cnp_ignored_total"), "ignored")
                .query_on(CNPS_IN_ONE, rate("rocewatch_cnp_received_total"), "received")
                .color("B", "red"),
            lines("3. What it then sends", "RDMA bytes sent (left) under the notifications received (right, dashed): the rate falls with them and comes back. If it stays, senders do not listen, and pause has to do the work.", INCAST)
                .unit("bps")
                .query("8 * rate(rocewatch_rdma_bytes_total{@port,direction=\"tx\"}[$__rate_interval])", "sent")
                .query(rate("rocewatch_cnp_handled_total"), "CNPs handled")
                .right("B", "pps", "CNPs"),
        ],
    }
}

fn errors() -> Row {
    let moving = |title, description, scene, limits| {
        lines(title, description, scene)
            .unit("cps")
            .limits(limits)
            .none("None in the shown time.")
    };
    Row {
        title: "Loss and errors",
        panels: vec![
            moving("RoCE errors", "Kinds that moved in the shown time. They overlap: a lost packet shows as a gap here, a NAK there, and a timeout if it was the last.", BAD_CABLE, SOME)
                .query(moved("rocewatch_roce_errors_total{@port}"), "{{error}}"),
            moving("Drops", "Reasons that moved in the shown time.", SLOW_RECEIVER, SOME)
                .query(moved("rocewatch_drops_total{@port}"), "{{direction}} {{reason}}"),
            moving("Receive buffer over its threshold", "A warning before pause or loss: the host takes less than the line brings.", SLOW_RECEIVER, SOME)
                .query("rate(rocewatch_rx_buffer_over_threshold_events_total{@port}[$__rate_interval])", "over threshold"),
        ],
    }
}

fn link() -> Row {
    Row {
        title: "Link and FEC",
        panels: vec![
            lines("Bit errors before correction", "Corrected bits by the bits of the line. RS(544,514) is made for 2.4e-4; far above its neighbours is a dirty or dying cable. Warned of from 1e-5 on.", BAD_CABLE)
                .size(6, 8)
                .unit("sci")
                .limits(Limits::From(&[(1e-5, "yellow"), (2.4e-4, "red")]))
                .query("rate(rocewatch_fec_corrected_bits_total{@port}[$__rate_interval]) / (8 * rocewatch_port_speed_bytes_per_second{@port})", "bit error ratio"),
            lines("Lost code words", "Code words with more errors than could be corrected: each is a lost packet or several.", BAD_CABLE)
                .size(6, 8)
                .unit("cps")
                .limits(ANY)
                .query("rate(rocewatch_fec_uncorrectable_blocks_total{@port}[$__rate_interval])", "lost"),
            lines("Link errors", "Kinds that moved in the shown time. stomped_crc: the fault lies further upstream.", BAD_CABLE)
                .size(6, 8)
                .unit("cps")
                .limits(SOME)
                .none("None in the shown time.")
                .query(moved("rocewatch_link_errors_total{@port}"), "{{error}}"),
            lines("Errors by lane", "Before correction. One lane above the others is the module or the connector; all of them the cable.", BAD_CABLE)
                .size(6, 8)
                .unit("cps")
                .query("rate(rocewatch_link_lane_errors_total{@port}[$__rate_interval])", "lane {{lane}}"),
            Panel::new(View::Bars, "Lost carriers", "As the kernel counts them, so that none between two scrapes is missed.", FLAP)
                .size(12, 6)
                .unit("none")
                .limits(ANY)
                .query("increase(rocewatch_link_down_events_total{@port}[$__rate_interval])", "lost carriers"),
            lines("Speed and lanes", "Negotiated speed (left) and lanes (right).", HEALTHY)
                .size(12, 6)
                .unit("bps")
                .query("8 * rocewatch_port_speed_bytes_per_second{@port}", "speed")
                .query("rocewatch_port_lanes{@port}", "lanes")
                .right("B", "none", "lanes"),
        ],
    }
}

fn optics() -> Row {
    const UNREAD: &str = "No module is read: sampling.module is off, or the cable is copper.";
    // What is dark has no logarithm.
    let dbm = |direction: &str| {
        format!(
            "10 * log10(clamp_min(rocewatch_optical_power_watts{{@port,direction=\"{direction}\"}}, 1e-7) / 1e-3)"
        )
    };
    let power =
        |title, description, scene| lines(title, description, scene).size(6, 8).unit(DBM).none(UNREAD);
    Row {
        title: "The optical module",
        panels: vec![
            power("Light received", "What arrives of each lane; -40 is dark. Modules of 100 Gb/s a lane are made for some -6 dBm and more; one lane far below the others is a dirty end or a bad fibre, all of them a bend or the peer's module.", BAD_CABLE)
                .limits(Limits::From(&[(-50.0, "red"), (-9.0, "yellow"), (-6.0, "green")]))
                .query(dbm("rx"), "lane {{lane}}"),
            power("Light sent", "What leaves of each lane. -40 is a laser that is off.", HEALTHY)
                .limits(Limits::From(&[(-50.0, "red"), (-6.0, "yellow"), (-3.0, "green")]))
                .query(dbm("tx"), "lane {{lane}}"),
            lines("Bias of the lasers", "The current that each takes. A rise over months means that it ages; 0, that it is off.", HEALTHY)
                .size(6, 8)
                .unit("amp")
                .none(UNREAD)
                .query("rocewatch_module_tx_bias_amperes{@port}", "lane {{lane}}"),
            lines("Temperature and supply", "Of the module. 70 °C is the most that most are made for; the supply is 3.3 V (right, dashed).", HEALTHY)
                .size(6, 8)
                .unit("celsius")
                .limits(Limits::From(&[(65.0, "yellow"), (70.0, "red")]))
                .none(UNREAD)
                .query("rocewatch_temperature_celsius{@port,sensor=\"module\"}", "module")
                .query("rocewatch_module_voltage_volts{@port}", "supply")
                .right("B", "volt", "supply"),
        ],
    }
}

fn host() -> Row {
    Row {
        title: "PCIe and the host",
        panels: vec![
            lines("Waiting for PCIe", "Share of a second that DMA waited for credit. rx: writes to memory, so that receiving stalls; tx: reads of memory, so that sending does.", SLOW_RECEIVER)
                .share()
                .limits(PCIE)
                .query("rocewatch_pcie_stalled_ratio{@port}", "{{direction}}"),
            lines("Seconds of waiting", "Share of the seconds in which DMA waited for more than 30 % of the second.", SLOW_RECEIVER)
                .share()
                .limits(PCIE)
                .quiet()
                .query("rate(rocewatch_pcie_stalled_seconds_total{@port}[$__rate_interval])", "{{direction}}"),
            lines("PCIe errors", "Of the signal between NIC and host: a slot, a riser or a retimer.", HEALTHY)
                .unit("cps")
                .limits(ANY)
                .quiet()
                .query("rate(rocewatch_pcie_errors_total{@port}[$__rate_interval])", "{{error}}"),
        ],
    }
}
