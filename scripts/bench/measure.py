"""What is measured, all peers in turns or at once, so that a busy moment falls on each of them."""

import pathlib
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .client import Client
from .peers import Memory, Peer, Rocewatch


@dataclass(frozen=True)
class Plan:
    """How long each part takes, in seconds; `rounds` and `few` are counts."""

    rounds: int
    hot: float
    idle: float
    paced: int
    few: int
    scale: float
    age: float  # of the first peer, when memory is read
    limit: int  # for the whole run


QUICK = Plan(rounds=3, hot=0.4, idle=8, paced=10, few=10, scale=8, age=10, limit=240)
# The rings reach back 120 s: at 130 s they are full.
FULL = Plan(rounds=8, hot=0.8, idle=30, paced=40, few=20, scale=20, age=130, limit=600)


@dataclass
class Figures:
    """What was measured of one peer. Times in seconds, shares of a core."""

    peer: Peer
    client: Client
    body: bytes = b""
    zipped: int = 0
    hot: list[float] = field(default_factory=list)
    hot_cpu: float = 0.0
    idle_share: float = 0.0
    idle_counters: float = 0.0
    paced: list[float] = field(default_factory=list)
    paced_share: float = 0.0
    paced_zipped: list[float] = field(default_factory=list)
    paced_zipped_share: float = 0.0
    calls: float | None = None
    memory: Memory | None = None

    def series(self) -> int:
        return len(lines(self.body))

    def hot_scrape_cpu(self) -> float:
        return self.hot_cpu / len(self.hot)

    def paced_scrape_cpu(self) -> float:
        """CPU of a scrape once a second, on top of what the peer does unasked."""
        return self.paced_share - self.idle_share


def lines(body: bytes) -> list[str]:
    return [line for line in body.decode().splitlines() if line and not line.startswith("#")]


def counters_a_second(figures: Figures) -> float:
    """How many values of the tree a peer that is scraped once a second reads in that second."""
    return sum(1 for line in lines(figures.body) if "infiniband_" in line or "netdata_ib_" in line)


def samples(body: bytes, name: str = "samples") -> dict[str, float]:
    """How many rows Rocewatch says that it read (or missed), by source of all ports together."""
    found: dict[str, float] = {}
    for line in lines(body):
        if match := re.match(rf'rocewatch_{name}_total\{{.*source="(\w+)".*\}} (\S+)$', line):
            found[match[1]] = found.get(match[1], 0.0) + float(match[2])
    return found


# ---- beside each other ----------------------------------------------------------------------------------------------


def measure(peers: list[Peer], plan: Plan, columns: dict[str, int]) -> list[Figures]:
    """Everything of all of them. `columns` is the counters that a row of each source has."""
    every = [Figures(peer, peer.connect()) for peer in peers]
    time.sleep(4)  # for rates, and with them all series, to be there
    for figures in every:
        measure_sizes(figures)
    say("scraping in a loop")
    for number in range(plan.rounds):
        for figures in every if number % 2 == 0 else reversed(every):
            measure_hot(figures, plan.hot)
    say("idling")
    measure_idle(every, plan, columns)
    say("scraping once a second")
    for figures, share in zip(every, shares(peers, lambda: paced(every, plan.paced, zipped=False))):
        figures.paced_share = share
    say("scraping once a second as Prometheus does")
    for figures, share in zip(every, shares(peers, lambda: paced(every, plan.paced, zipped=True))):
        figures.paced_zipped_share = share
    if plan.age > peers[0].age():
        say("waiting for the rings to fill")
    peers[0].wait_until(plan.age)
    for figures in every:
        figures.memory = figures.peer.memory()
    say("counting system calls")
    for figures in every:
        figures.calls = figures.peer.system_calls(figures.client, plan.few)
    return every


def measure_sizes(figures: Figures) -> None:
    figures.client.scrape(figures.peer.zipped)
    figures.zipped = len(figures.client.body())
    figures.client.scrape(figures.peer.plain)
    figures.body = figures.client.body()


def measure_hot(figures: Figures, seconds: float) -> None:
    cpu = figures.peer.cpu()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        figures.hot.append(figures.client.scrape(figures.peer.plain))
    figures.hot_cpu += figures.peer.cpu() - cpu


def measure_idle(every: list[Figures], plan: Plan, columns: dict[str, int]) -> None:
    """CPU while nobody asks, and how many counters were read meanwhile."""

    def read() -> list[float]:
        return [counters_so_far(figures, columns) for figures in every]

    before, began = read(), time.monotonic()
    time.sleep(1)  # what the asking cost is not to be counted
    all_shares = shares([figures.peer for figures in every], lambda: time.sleep(plan.idle))
    after, took = read(), time.monotonic() - began
    for figures, share, first, last in zip(every, all_shares, before, after):
        figures.idle_share = share
        own = isinstance(figures.peer, Rocewatch)
        figures.idle_counters = (last - first) / took if own else counters_a_second(figures)


def counters_so_far(figures: Figures, columns: dict[str, int]) -> float:
    if not isinstance(figures.peer, Rocewatch):
        return 0.0
    figures.client.scrape(figures.peer.plain)
    read = samples(figures.client.body())
    return sum(columns.get(source, 0) * rows for source, rows in read.items())


def paced(every: list[Figures], seconds: int, *, zipped: bool) -> None:
    """Each peer once a second, evenly apart."""
    slot = 1 / len(every)
    due = time.monotonic()
    for _ in range(seconds):
        for figures in every:
            asked = figures.peer.zipped if zipped else figures.peer.plain
            (figures.paced_zipped if zipped else figures.paced).append(figures.client.scrape(asked))
            due += slot
            time.sleep(max(0.0, due - time.monotonic()))


def shares(peers: list[Peer], while_doing: Callable[[], None]) -> list[float]:
    """The share of a core that each peer takes meanwhile."""
    before, began = [peer.cpu() for peer in peers], time.monotonic()
    while_doing()
    took = time.monotonic() - began
    return [(peer.cpu() - cpu) / took for peer, cpu in zip(peers, before)]


# ---- many devices, and fast -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How a daemon kept up: rows that were due, that were read, and that it says it missed."""

    due: float
    read: float
    missed: float
    share: float
    memory: Memory
    page: int
    scrape: float

    def kept_up(self) -> bool:
        """None is missing, but for the one of each source that may fall on the edge."""
        return self.missed == 0 and self.read >= 0.99 * self.due


def measure_scale(peer: Peer, seconds: float, a_second: float) -> Scale:
    """Watches for that long a daemon that owes so many rows a second."""
    client = peer.connect()
    time.sleep(6)

    def now() -> tuple[float, float, float]:
        client.scrape(peer.plain)
        body = client.body()
        return time.monotonic(), of_files(samples(body)), of_files(samples(body, "samples_missed"))

    began, read_before, missed_before = now()
    (share,) = shares([peer], lambda: time.sleep(seconds))
    ended, read_after, missed_after = now()
    scrapes = []
    for _ in range(5):
        time.sleep(0.3)
        scrapes.append(client.scrape(peer.plain))
    return Scale(
        due=a_second * (ended - began),
        read=read_after - read_before,
        missed=missed_after - missed_before,
        share=share,
        memory=peer.memory(),
        page=len(client.body()),
        scrape=statistics.median(scrapes),
    )


def of_files(rows: dict[str, float]) -> float:
    return rows["hw_counters"] + rows["port_counters"]


def say(what: str) -> None:
    print(f"bench-peers: {what}", file=sys.stderr, flush=True)
