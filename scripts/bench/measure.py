"""What is measured, all peers in turns or at once, so that a busy moment falls on each of them."""

import contextlib
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .client import Client
from .peers import Memory, Peer

# Starts a peer anew.
Start = Callable[[], Peer]


@dataclass(frozen=True)
class Plan:
    """How long each part takes, in seconds; `turns`, `rounds`, `pairs` and `few` are counts."""

    turns: int  # of each Rocewatch and of each floor
    rounds: int  # of scraping in a loop, in each turn of a Rocewatch
    hot: float
    pairs: int  # of a second with a scrape and one without, for each way of asking, in each turn
    floor: float
    few: int
    scale: float
    age: float  # of those whose memory is read
    limit: int  # for the whole run


QUICK = Plan(turns=1, rounds=2, hot=0.4, pairs=6, floor=3, few=10, scale=8, age=10, limit=360)
# A turn has 32 s in pairs, and with them one look for ports, which comes every 30 s. The rings reach back 120 s.
FULL = Plan(turns=2, rounds=2, hot=0.6, pairs=8, floor=8, few=20, scale=20, age=130, limit=840)
# By then rates are there, and with them all series; what a start costs is over.
WARM = 8


@dataclass
class Second:
    """The CPU that a peer took in a second: all of it, and that of the threads which serve."""

    whole: float
    serving: float


@dataclass
class Paced:
    """A peer in seconds with one scrape and in those between, in turns: the times, and the CPU of each second."""

    times: list[float] = field(default_factory=list)
    scraped: list[Second] = field(default_factory=list)
    unasked: list[Second] = field(default_factory=list)

    def cpu(self) -> float:
        """What a scrape takes on top of what the peer does unasked. Medians: seconds next to each other differ by it alone."""
        scraped, unasked = ([second.serving for second in seconds] for seconds in (self.scraped, self.unasked))
        return max(0.0, statistics.median(scraped) - statistics.median(unasked))

    def without_scrapes(self) -> list[float]:
        """All seconds without what the scrapes took: work that comes every half minute falls in one or the other."""
        return [*(second.whole for second in self.unasked), *(second.whole - self.cpu() for second in self.scraped)]


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
        return self.grown / self.seconds if self.seconds else 0.0


@dataclass
class Figures:
    """What was measured of one peer. Times in seconds."""

    peer: Peer
    body: bytes = b""
    zipped_length: int = 0
    hot: list[float] = field(default_factory=list)
    hot_cpu: float = 0.0
    plain: Paced = field(default_factory=Paced)
    zipped: Paced = field(default_factory=Paced)
    read: Rate = field(default_factory=Rate)  # of counters, by its own word
    counters: float = 0.0  # read in a second
    calls: float | None = None
    memory: Memory | None = None

    def series(self) -> int:
        return len(lines(self.body))

    def hot_scrape_cpu(self) -> float:
        return self.hot_cpu / len(self.hot)

    def unasked(self) -> float:
        """Share of a core while nobody asks."""
        return max(0.0, statistics.mean(self.plain.without_scrapes() + self.zipped.without_scrapes()))


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


def measure(
    ours: list[Start], theirs: list[Peer], floors: list[Start], plan: Plan, columns: dict[str, int]
) -> tuple[list[Figures], list[float]]:
    """Everything of all of them, and the share of a core that each of `floors` takes. `columns` is the counters that a row
    of each source has.

    Each Rocewatch and each floor is started for its turns, and there is no other meanwhile: they read the same files at the
    same instants, and whoever reads second finds them in the processor's caches."""
    watching: list[Figures | None] = [None] * len(ours)
    others = [Figures(peer) for peer in theirs]
    shares = [Rate() for _ in floors]
    for turn in range(plan.turns):
        order = range(len(ours)) if turn % 2 == 0 else reversed(range(len(ours)))
        for at in order:
            with ours[at]() as peer:
                say(f"measuring {peer.name}, beside the others")
                figures = watching[at] = watching[at] or Figures(peer)
                figures.peer = peer
                a_turn(figures, others, plan, columns)
        for floor, share in zip(floors, shares):
            with floor() as peer:
                time.sleep(2)
                share.begin(peer.cpu())
                time.sleep(plan.floor)
                share.end(peer.cpu())
    for figures in others:
        figures.counters = counters_a_second(figures)
    watched = [figures for figures in watching if figures]
    for figures in watched:
        figures.counters = figures.read.a_second()
    every = watched + others
    with contextlib.ExitStack() as running:
        for figures, start in zip(every, ours):
            figures.peer = running.enter_context(start())
        hold(every, plan)
    return every, [share.a_second() for share in shares]


def a_turn(figures: Figures, others: list[Figures], plan: Plan, columns: dict[str, int]) -> None:
    """The figures of a Rocewatch, and of all that it is compared with."""
    every = [figures, *others]
    clients = {each.peer.name: each.peer.connect() for each in every}
    figures.peer.wait_until(WARM)
    for each in every:
        measure_sizes(each, clients[each.peer.name])
    for _ in range(plan.rounds):
        for each in every:
            measure_hot(each, clients[each.peer.name], plan.hot)
    client = clients[figures.peer.name]
    figures.read.begin(counters_so_far(figures.peer, client, columns))
    time.sleep(1)  # so that the first scrape finds no page ready
    for number in range(plan.pairs):
        # Whoever is asked first finds the kernel's code for connections in colder caches, so that each is in turn.
        first = number % len(every)
        for zipped in (False, True):
            a_pair(every[first:] + every[:first], clients, zipped=zipped)
    figures.read.end(counters_so_far(figures.peer, client, columns))


def hold(every: list[Figures], plan: Plan) -> None:
    """Memory once the rings are full, and system calls."""
    say("waiting for the rings to fill")
    every[0].peer.wait_until(plan.age)
    for figures in every:
        figures.memory = figures.peer.memory()
    say("counting system calls")
    for figures in every:
        figures.calls = figures.peer.system_calls(figures.peer.connect(), plan.few)


def measure_sizes(figures: Figures, client: Client) -> None:
    client.scrape(figures.peer.zipped)
    figures.zipped_length = len(client.body())
    client.scrape(figures.peer.plain)
    figures.body = client.body()


def measure_hot(figures: Figures, client: Client, seconds: float) -> None:
    cpu = figures.peer.cpu()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        figures.hot.append(client.scrape(figures.peer.plain))
    figures.hot_cpu += figures.peer.cpu() - cpu


def counters_so_far(peer: Peer, client: Client, columns: dict[str, int]) -> float:
    """The values that a Rocewatch has read, by its own word."""
    client.scrape(peer.plain)
    read = samples(client.body())
    return sum(columns.get(source, 0) * rows for source, rows in read.items())


def a_pair(every: list[Figures], clients: dict[str, Client], *, zipped: bool) -> None:
    """A second in which each peer is asked once, evenly apart, and one in which none is."""
    slot = 1 / len(every)
    for asking in (True, False):
        due = time.monotonic()
        before = [(figures.peer.cpu(), figures.peer.serving_cpu()) for figures in every]
        for figures in every:
            if asking:
                peer, paced = figures.peer, figures.zipped if zipped else figures.plain
                paced.times.append(clients[peer.name].scrape(peer.zipped if zipped else peer.plain))
            due += slot
            time.sleep(max(0.0, due - time.monotonic()))
        for figures, (whole, serving) in zip(every, before):
            paced = figures.zipped if zipped else figures.plain
            second = Second(figures.peer.cpu() - whole, figures.peer.serving_cpu() - serving)
            (paced.scraped if asking else paced.unasked).append(second)


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
