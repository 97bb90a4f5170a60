"""The tables."""

import os
import platform
import statistics
from dataclasses import dataclass

from .measure import Figures, Scale
from .peers import Memory


@dataclass(frozen=True)
class Aim:
    """What is wanted, what was measured, and whether that is enough."""

    what: str
    figure: str
    met: bool


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def micro2(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs"


def both(values: list[float]) -> str:
    return f"{micro(statistics.median(values))} / {micro(statistics.quantiles(values, n=100)[98])}"


def per_counter(figures: Figures) -> float:
    """CPU for each counter read while nobody asks."""
    return figures.unasked() / figures.counters


def per_counter_shown(figures: Figures) -> float:
    """CPU for each counter that is read and shown, once a second each."""
    return (figures.unasked() + figures.plain.cpu()) / figures.counters


def rows(figures: Figures) -> dict[str, str]:
    memory = figures.memory
    samples = figures.counters > 0
    return {
        "counters read a second": f"{figures.counters:,.0f}" if samples else "-",
        "CPU while nobody asks, share of a core": f"{figures.unasked():.3%}",
        "- per counter read": micro2(per_counter(figures)) if samples else "-",
        "- per counter, with a scrape a second": micro2(per_counter_shown(figures)) if samples else "-",
        "series per scrape": f"{figures.series():,}",
        "bytes, plain / as Prometheus asks": f"{len(figures.body):,} / {figures.zipped_length:,}",
        "scrape in a loop, p50 / p99": both(figures.hot),
        "- CPU of one": micro(figures.hot_scrape_cpu()),
        "scrape now and then, p50 / p99": both(figures.plain.times),
        "- its CPU": micro(figures.plain.cpu()),
        "- as Prometheus asks, p50 / p99": both(figures.zipped.times),
        "- CPU of one so": micro(figures.zipped.cpu()),
        "system calls per scrape": "not counted" if figures.calls is None else f"{figures.calls:,.0f}",
        "resident memory": f"{memory.resident:.1f} MB",
        "- not backed by files": f"{memory.anonymous:.1f} MB",
        "threads": str(memory.threads),
    }


def table(every: list[Figures], devices: int) -> str:
    columns = [rows(figures) for figures in every]
    head = f"| {devices} mlx5 ports | " + " | ".join(figures.peer.name for figures in every) + " |"
    body = [f"| {name} | " + " | ".join(column[name] for column in columns) + " |" for name in columns[0]]
    return "\n".join([head, "| --- " * (len(every) + 1) + "|", *body])


def aims(by_name: dict[str, Figures], demo: Memory, scales: dict[str, Scale]) -> list[Aim]:
    ours, slow, fast = by_name["rocewatch"], by_name["rocewatch 1 Hz"], by_name["rocewatch 10 Hz"]
    paces = {"as it comes": ours, "once a second": slow, "ten times a second": fast}
    static, collectd = by_name["static, same server"], by_name["collectd"]
    netdata, exporter = by_name["netdata"], by_name["node_exporter"]
    read = {pace: per_counter(netdata) / per_counter(figures) for pace, figures in paces.items()}
    shown = {pace: per_counter_shown(exporter) / per_counter_shown(figures) for pace, figures in paces.items()}
    median = statistics.median
    hot_cost = ours.hot_scrape_cpu() / static.hot_scrape_cpu()
    paced_cost = ours.plain.cpu() / static.plain.cpu()
    paced_time = median(ours.plain.times) / median(static.plain.times)
    found = [
        *(Aim(f"CPU per counter, {pace}, 3 times less than netdata's", f"{times:.1f} times", times >= 3) for pace, times in read.items()),
        *(
            Aim(f"CPU per counter, {pace} and scraped once, 8 times less than node_exporter's", f"{times:.1f} times", times >= 8)
            for pace, times in shown.items()
        ),
        Aim("a scrape in a loop takes at most twice the CPU of a static page", f"{hot_cost:.2f} times", hot_cost <= 2),
        Aim("a scrape now and then likewise", f"{paced_cost:.2f} times", paced_cost <= 2),
        Aim("its p50 at most twice that of a static page", f"{paced_time:.2f} times", paced_time <= 2),
        at_most("scrape p50 in a loop below that of collectd's page", median(ours.hot), median(collectd.hot)),
        at_most("scrape p50 now and then likewise", median(ours.plain.times), median(collectd.plain.times)),
        Aim("every counter at 10 Hz in 1 % of a core", f"{fast.unasked():.2%}", fast.unasked() <= 0.01),
        resident("resident memory with full rings, 16 MB", ours.memory, 16),
        resident("- the next aim, 10 MB", ours.memory, 10),
        resident("- the simulated server with all sources, 16 MB", demo, 16),
    ]
    for name, scale in scales.items():
        figure = f"{scale.read:,.0f} of {scale.due:,.0f} rows, {scale.missed:,.0f} missed"
        found.append(Aim(f"{name} without a missed sample", figure, scale.kept_up()))
    return found


def at_most(what: str, ours: float, theirs: float) -> Aim:
    return Aim(what, f"{micro(ours)}, {micro(theirs)}", ours < theirs)


def resident(what: str, memory: Memory, limit: float) -> Aim:
    return Aim(what, f"{memory.resident:.1f} MB", memory.resident <= limit)


def aims_table(found: list[Aim]) -> str:
    body = [f"| {aim.what} | {aim.figure} | {'met' if aim.met else 'MISSED'} |" for aim in found]
    return "\n".join(["| aim | measured | |", "| --- | --- | --- |", *body])


def scale_table(scales: dict[str, Scale]) -> str:
    head = "| | rows due | read | missed | CPU | resident | threads | page | scrape p50 |"
    body = [
        f"| {name} | {s.due:,.0f} | {s.read:,.0f} | {s.missed:,.0f} | {s.share:.2%} | {s.memory.resident:.1f} MB"
        f" | {s.memory.threads} | {s.page:,} bytes | {micro(s.scrape)} |"
        for name, s in scales.items()
    ]
    return "\n".join([head, "| --- " * 9 + "|", *body])


def machine() -> str:
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return f"{os.cpu_count()} processors, {platform.machine()}, Linux {platform.release().split('-')[0]}, load {load}"
