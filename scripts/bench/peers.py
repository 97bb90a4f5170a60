"""The servers that are compared, each started and ended by this program."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from .client import AS_PROMETHEUS, Client, request
from .tree import ROOT


@dataclass(frozen=True)
class Memory:
    """Resident memory in MB (10^6 bytes), the part of it that no file backs, and when."""

    resident: float
    anonymous: float
    threads: int
    age: float


class Peer:
    """A server. It ends with this program, even if that is killed."""

    def __init__(self, name: str, command: list[str], folder: pathlib.Path, path: str = "/metrics"):
        self.name = name
        self.plain = request(path)
        self.zipped = request(path, **AS_PROMETHEUS)
        self.log = folder / f"{name}.log"
        self.port = free_port()
        self.started = time.monotonic()
        command = ["setpriv", "--pdeathsig", "KILL", *(part.replace("PORT", str(self.port)) for part in command)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connect(self) -> Client:
        """A connection, as soon as the server takes one."""
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError):
                return Client(self.port)
            time.sleep(0.05)
        sys.exit(f"bench-peers: {self.name} does not answer; it says:\n{self.log.read_text()}")

    def age(self) -> float:
        return time.monotonic() - self.started

    def wait_until(self, age: float) -> None:
        time.sleep(max(0.0, age - self.age()))

    def cpu(self) -> float:
        """CPU time of all its threads so far in seconds, exact to the nanosecond: clock_getcpuclockid(3)."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def serving_cpu(self) -> float:
        """The same of the threads that a scrape takes, as far as they can be told from others."""
        return self.cpu()

    def memory(self) -> Memory:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        kib = {name: int(value) * 1024 / 1e6 for name, value in re.findall(r"(\w+):\s+(\d+) kB", status)}
        return Memory(kib["VmRSS"], kib["RssAnon"], int(re.findall(r"Threads:\s+(\d+)", status)[0]), self.age())

    def serving_thread_alone(self) -> bool:
        """True if all that a scrape costs is in the first thread."""
        return False

    def system_calls(self, client: Client, scrapes: int) -> float | None:
        """System calls per scrape, one scrape a fifth of a second, by strace; what it does unasked is among them."""
        if shutil.which("strace") is None:
            return None
        follow = [] if self.serving_thread_alone() else ["-f"]
        with tempfile.NamedTemporaryFile() as counts:
            command = ["strace", *follow, "-c", "-U", "name,calls", "-o", counts.name, "-p", str(self.process.pid)]
            tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            if "attached" in tracer.stderr.readline():
                for _ in range(scrapes):
                    client.scrape(self.plain)
                    time.sleep(0.2)
            tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=10)
            total = re.search(r"^total\s+(\d+)", pathlib.Path(counts.name).read_text(), re.MULTILINE)
        return int(total[1]) / scrapes if total else None


class Rocewatch(Peer):
    """`rocewatch run` on a tree, or `rocewatch demo`."""

    def __init__(self, name: str, binary: pathlib.Path, tree: pathlib.Path | None, folder: pathlib.Path, sampling: str = ""):
        config = folder / f"{name}.toml"
        # With 256 devices nothing is to be left out.
        config.write_text(f"[metrics]\nmax_series = 100000\n[sampling]\n{sampling}")
        run = ["run", "--sysfs", str(tree), "--config", str(config)] if tree else ["demo"]
        super().__init__(name, [str(binary), *run, "--listen", "127.0.0.1:PORT"], folder)

    def serving_thread_alone(self) -> bool:
        return True

    def serving_cpu(self) -> float:
        nanoseconds = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0]
        return int(nanoseconds) / 1e9


def intervals(interval: str, *further: str) -> str:
    """The part `sampling` of a configuration in which every counter is read that often."""
    return "\n".join([f'hw_counters = "{interval}"', f'port_counters = "{interval}"', *further])


def node_exporter(tree: pathlib.Path, folder: pathlib.Path) -> Peer:
    """Only what it knows of RDMA, and without its metrics of itself: the least that it can be asked for."""
    return Peer("node_exporter", [node_exporter_program(), *NODE_EXPORTER, f"--path.sysfs={tree}"], folder)


NODE_EXPORTER = [
    "--web.listen-address=127.0.0.1:PORT",
    "--web.disable-exporter-metrics",
    "--collector.disable-defaults",
    "--collector.infiniband",
]


def node_exporter_program() -> str:
    return program("prometheus-node-exporter", "node_exporter")


def collectd(tree: pathlib.Path, folder: pathlib.Path) -> Peer:
    """Its infiniband plugin once a second, and the plugin that keeps a page of the values for Prometheus."""
    port = free_port()
    config = folder / "collectd.conf"
    config.write_text(
        f"""BaseDir "{folder}"
PIDFile "{folder}/collectd.pid"
PluginDir "/usr/lib/collectd"
TypesDB "/usr/share/collectd/types.db"
Interval 1
Hostname "node"
FQDNLookup false
LoadPlugin infiniband
LoadPlugin write_prometheus
<Plugin write_prometheus>
  Host "127.0.0.1"
  Port "{port}"
</Plugin>
"""
    )
    peer = Peer("collectd", as_sysfs(tree, [program("collectd"), "-f", "-C", str(config)]), folder)
    peer.port = port
    return peer


def netdata(tree: pathlib.Path, folder: pathlib.Path) -> Peer:
    """Its infiniband module once a second, and nothing else that can be switched off."""
    home = folder / "netdata"
    home.mkdir()
    port = free_port()
    config = home / "netdata.conf"
    config.write_text(netdata_config(str(home), pathlib.Path.home().owner(), port))
    command = as_sysfs(tree, [program("netdata"), "-D", "-c", str(config)])
    peer = Peer("netdata", command, folder, path=NETDATA_PAGE)
    peer.port = port
    return peer


NETDATA_PAGE = "/api/v1/allmetrics?format=prometheus"


def netdata_config(home: str, user: str, port: int) -> str:
    sections = {
        "global": {"run as user": user},
        "directories": dict.fromkeys(["cache", "lib", "log", "home", "config", "plugins", "registry"], home),
        "db": {"mode": "ram", "update every": "1"},
        "logs": {"debug": "none", "error": "stderr", "access": "none", "health": "none"},
        **{name: {"enabled": "no"} for name in ("health", "ml", "statsd", "registry")},
        "web": {"bind to": f"127.0.0.1:{port}"},
        "plugins": dict.fromkeys(NETDATA_PLUGINS, "no") | {"proc": "yes"},
        "plugin:proc": dict.fromkeys(NETDATA_MODULES, "no") | {"/sys/class/infiniband": "yes"},
    }
    return "\n".join(
        f"[{name}]\n" + "".join(f"    {key} = {value}\n" for key, value in keys.items()) for name, keys in sections.items()
    )


NETDATA_PLUGINS = """timex,idlejitter,netdata monitoring,netdata monitoring extended,profile,tc,diskspace,cgroups,statsd,
enable running new plugins,slabinfo,apps,charts.d,python.d,go.d,perf,ioping,fping,ebpf""".replace("\n", "").split(",")
NETDATA_MODULES = """/proc/net/dev,/proc/pagetypeinfo,/proc/stat,/proc/uptime,/proc/loadavg,
/proc/sys/kernel/random/entropy_avail,/proc/pressure,/proc/interrupts,/proc/softirqs,/proc/vmstat,/proc/meminfo,
/sys/kernel/mm/ksm,/sys/block/zram,/sys/devices/system/edac/mc,/sys/devices/system/node,/proc/net/wireless,
/proc/net/sockstat,/proc/net/sockstat6,/proc/net/netstat,/proc/net/snmp,/proc/net/snmp6,/proc/net/sctp/snmp,
/proc/net/softnet_stat,/proc/net/ip_vs/stats,/proc/net/stat/conntrack,/proc/net/stat/synproxy,/proc/diskstats,/proc/mdstat,
/proc/net/rpc/nfsd,/proc/net/rpc/nfs,/proc/spl/kstat/zfs/arcstats,/proc/spl/kstat/zfs/pool/state,/sys/fs/btrfs,ipc,
/sys/class/power_supply""".replace("\n", "").split(",")


def static_page(page: pathlib.Path, folder: pathlib.Path, *, bare: bool) -> Peer:
    """The same bytes from memory: by the HTTP server that Rocewatch has, or by the least that is one."""
    name = "static, bare" if bare else "static, same server"
    return Peer(name, [str(built("static_page")), "--bare" if bare else "--same", str(page), "127.0.0.1:PORT"], folder)


def reading_loop(tree: pathlib.Path, folder: pathlib.Path, *options: str) -> Peer:
    """A floor: the files read by a program that does nothing else. It serves nobody."""
    return Peer(" ".join(("reading loop", *options)), [str(built("reading_loop")), str(tree), *options], folder)


def as_sysfs(tree: pathlib.Path, command: list[str]) -> list[str]:
    """The command in a mount namespace of its own where the tree is /sys, for programs that know no other place."""
    return [*own_mounts(), "sh", "-c", 'mount --bind "$0" /sys && exec "$@"', str(tree), *command]


def own_mounts() -> list[str]:
    """What starts a command in a mount namespace of its own."""
    unprivileged = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *unprivileged]


@contextlib.contextmanager
def memory_as_sysfs() -> Iterator[pathlib.Path]:
    """A folder in memory whose files keep no time of their last read, as those of sysfs do not (`kernfs_fop_read_iter` of
    fs/kernfs/file.c): to keep it took a sixth of a read. This process needs a mount namespace of its own."""
    with tempfile.TemporaryDirectory(prefix="rocewatch-bench-") as name:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "noatime,mode=755", "tmpfs", name], check=True)
        try:
            yield pathlib.Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def program(*names: str) -> str:
    for name in names:
        if path := shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin"):
            return path
    sys.exit(f"bench-peers: {names[0]} is not there; ./x bench peers installs it")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def target() -> pathlib.Path:
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"


def built(example: str) -> pathlib.Path:
    """The program of that name, built as Rocewatch is."""
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "rocewatch"]
    subprocess.run([*cargo, "--example", example], cwd=ROOT, check=True)
    return target() / "examples" / example


def built_daemon() -> pathlib.Path:
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "rocewatch"]
    subprocess.run(cargo, cwd=ROOT, check=True)
    return target() / "rocewatch"
