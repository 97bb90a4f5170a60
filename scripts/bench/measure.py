"""What is measured, all peers in turns or at once, so that a busy moment falls on each of them."""

import contextlib
import re
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from .client import Client
from .peers import Memory, Peer, Rocewatch


@dataclass(frozen=True)
class Plan:
    """How long each part takes, in seconds; `rounds`, `pairs` and `few` are counts."""

    rounds: int
    hot: float
    pairs: int  # of a second with a scrape and one without, for each Rocewatch
    few: int
    scale: float
    age: float  # of the first peer, when memory is read
    limit: int  # for the whole run


QUICK = Plan(rounds=3, hot=0.4, pairs=3, few=10, scale=8, age=10, limit=300)
# The rings reach back 120 s: at 130 s they are full.
FULL = Plan(rounds=6, hot=0.8, pairs=12, few=20, scale=20, age=130, limit=840)


@dataclass
class Paced:
    """A peer in seconds with one scrape and in those between, in turns: the times, and the CPU of each second."""

    times: list[float] = field(default_factory=list)
    scraped: list[float] = field(default_factory=list)
    unasked: list[float] = field(default_factory=list)

    def cpu(self) -> float:
        """What a scrape takes on top of what the peer does unasked. Medians: seconds next to each other differ by it alone."""
        return max(0.0, statistics.median(self.scraped) - statistics.median(self.unasked))


@dataclass
class Figures:
    """What was measured of one peer. Times in seconds."""

    peer: Peer
    client: Client
    body: bytes = b""
    zipped_length: int = 0
    hot: list[float] = field(default_factory=list)
    hot_cpu: float = 0.0
    plain: Paced = field(default_factory=Paced)
    zipped: Paced = field(default_factory=Paced)
    counters: float = 0.0  # read in a second
    calls: float | None = None
    memory: Memory | None = None

    def series(self) -> int:
        return len(lines(self.body))

    def hot_scrape_cpu(self) -> float:
        return self.hot_cpu / len(self.hot)

    def unasked(self) -> float:
        """Share of a core while nobody asks."""
        return statistics.mean(self.plain.unasked + self.zipped.unasked)


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


def measure(peers: list[Peer], floors: list[Peer], plan: Plan, columns: dict[str, int]) -> tuple[list[Figures], list[float]]:
    """Everything of all of them, and the share of a core that each of `floors` takes meanwhile. `columns` is the counters
    that a row of each source has."""
    every = [Figures(peer, peer.connect()) for peer in peers]
    time.sleep(4)  # for rates, and with them all series, to be there
    for figures in every:
        measure_sizes(figures)
    say("scraping in a loop")
    for number in range(plan.rounds):
        for figures in every if number % 2 == 0 else reversed(every):
            measure_hot(figures, plan.hot)
    say("scraping now and then")
    shares = now_and_then(every, floors, plan, columns)
    if plan.age > peers[0].age():
        say("waiting for the rings to fill")
    peers[0].wait_until(plan.age)
    for figures in every:
        figures.memory = figures.peer.memory()
    say("counting system calls")
    for figures in every:
        # Servers close a connection that was idle for half a minute.
        figures.calls = figures.peer.system_calls(figures.peer.connect(), plan.few)
    return every, shares


def now_and_then(every: list[Figures], floors: list[Peer], plan: Plan, columns: dict[str, int]) -> list[float]:
    """Each Rocewatch and each floor in turns, the others of them stopped: they read the same files, most of them at the
    same instants, and whoever reads second finds them in the processor's caches. Gives what the floors take."""
    ours = [figures for figures in every if isinstance(figures.peer, Rocewatch)]
    theirs = [figures for figures in every if figures not in ours]
    readers = [*(figures.peer for figures in ours), *floors]
    read, shares = [Rate() for _ in ours], [Rate() for _ in floors]
    for _ in range(plan.pairs):
        for figures, counters in zip(ours, read):
            with alone(figures.peer, readers):
                counters.begin(counters_so_far(figures, columns))
                time.sleep(1)  # so that the first scrape finds no page ready
                for zipped in (False, True):
                    a_pair([figures, *theirs], zipped=zipped)
                counters.end(counters_so_far(figures, columns))
        for floor, share in zip(floors, shares):
            with alone(floor, readers):
                share.begin(floor.cpu())
                time.sleep(2)
                share.end(floor.cpu())
    for figures, counters in zip(ours, read):
        figures.counters = counters.a_second()
    for figures in theirs:
        figures.counters = counters_a_second(figures)
    return [share.a_second() for share in shares]


@contextlib.contextmanager
def alone(peer: Peer, readers: list[Peer]) -> Iterator[None]:
    """All of `readers` but this one are stopped."""
    with contextlib.ExitStack() as stopped:
        for other in readers:
            if other is not peer:
                stopped.enter_context(other.stopped())
        time.sleep(1)  # to catch up with what it was due while it was stopped itself
        yield


@dataclass
class Rate:
    """How fast something grows, over several spans of time."""

    grown: float = 0.0
    seconds: float = 0.0

    def begin(self, value: float) -> None:
        self.grown -= value
        self.seconds -= time.monotonic()

    def end(self, value: float) -> None:
        self.grown += value
        self.seconds += time.monotonic()

    def a_second(self) -> float:
        return self.grown / self.seconds


def measure_sizes(figures: Figures) -> None:
    figures.client.scrape(figures.peer.zipped)
    figures.zipped_length = len(figures.client.body())
    figures.client.scrape(figures.peer.plain)
    figures.body = figures.client.body()


def measure_hot(figures: Figures, seconds: float) -> None:
    cpu = figures.peer.cpu()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        figures.hot.append(figures.client.scrape(figures.peer.plain))
    figures.hot_cpu += figures.peer.cpu() - cpu


def counters_so_far(figures: Figures, columns: dict[str, int]) -> float:
    """The values that a Rocewatch has read, by its own word."""
    figures.client.scrape(figures.peer.plain)
    read = samples(figures.client.body())
    return sum(columns.get(source, 0) * rows for source, rows in read.items())


def a_pair(every: list[Figures], *, zipped: bool) -> None:
    """A second in which each peer is asked once, evenly apart, and one in which none is."""
    slot = 1 / len(every)
    for asking in (True, False):
        due = time.monotonic()
        before = [figures.peer.cpu() for figures in every]
        for figures in every:
            if asking:
                peer, paced = figures.peer, figures.zipped if zipped else figures.plain
                paced.times.append(figures.client.scrape(peer.zipped if zipped else peer.plain))
            due += slot
            time.sleep(max(0.0, due - time.monotonic()))
        for figures, cpu in zip(every, before):
            paced = figures.zipped if zipped else figures.plain
            (paced.scraped if asking else paced.unasked).append(figures.peer.cpu() - cpu)


# ---- many devices, and fast -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How a daemon kept up: rows that were due, that were read, and that it says it missed."""

    sources: int
    due: float
    read: float
    missed: float
    share: float
    memory: Memory
    page: int
    scrape: float

    def kept_up(self) -> bool:
        """None is missing, but for the one of each source that may fall on either edge of the time looked at."""
        return self.missed == 0 and self.read > self.due - self.sources


def measure_scale(peer: Peer, seconds: float, sources: int, rate: int) -> Scale:
    """Watches for that long a daemon that owes so many rows a second of each source."""
    client = peer.connect()
    time.sleep(6)

    def now() -> tuple[float, float, float]:
        client.scrape(peer.plain)
        body = client.body()
        return time.monotonic(), of_files(samples(body)), of_files(samples(body, "samples_missed"))

    began, read_before, missed_before = now()
    cpu = peer.cpu()
    time.sleep(seconds)
    share = (peer.cpu() - cpu) / seconds
    ended, read_after, missed_after = now()
    scrapes = []
    for _ in range(5):
        time.sleep(0.3)
        scrapes.append(client.scrape(peer.plain))
    return Scale(
        sources=sources,
        due=sources * rate * (ended - began),
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
