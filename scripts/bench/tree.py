"""A copied sysfs of mlx5 ports, made from the fixture of the tests."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIXTURE = ROOT / "tests/fixtures/mlx5/sysfs.txt"
# `lifespan` is a setting that lies among the counters.
COUNTERS = {"counters": 21, "hw_counters": 31}


def lay_out(tree: pathlib.Path, devices: int) -> None:
    """Writes a sysfs of that many ports, each like the first of the fixture but for its names and values."""
    first, _, _ = FIXTURE.read_text().partition("# ---- port 1 ----")
    lines = [line for line in first.splitlines() if line and not line.startswith("#")]
    for number in range(devices):
        for at, line in enumerate(lines):
            path, separator, content = re.split(r" (=|->) ", renamed(line, number), maxsplit=1)
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if separator == "=":
                file.write_text(own_content(file, number, at, content) + "\n")
            elif not file.is_symlink():
                file.symlink_to(content)
    for folder, expected in COUNTERS.items():
        found = len(list((tree / "class/infiniband/mlx5_0/ports/1" / folder).glob("*"))) - (folder == "hw_counters")
        assert found == expected, f"the fixture has {found} {folder}, not {expected}"


def renamed(line: str, number: int) -> str:
    """The line of the fixture for port `number`: PCI has 256 buses to a domain, so a domain is left after 15 ports."""
    domain, place = divmod(number, 15)

    def own_bus(bus: re.Match[str]) -> str:
        return f"{domain:04x}:{int(bus[1], 16) + 0x10 * (place - 1):02x}"

    line = re.sub(r"0000:(1[789a])", own_bus, line).replace("pci0000:", f"pci{domain:04x}:")
    return line.replace("mlx5_0", f"mlx5_{number}").replace("ens0np0", f"ens{number}np0")


def own_content(file: pathlib.Path, number: int, at: int, content: str) -> str:
    if file.parent.name in COUNTERS and file.name != "lifespan":
        # As many digits as the counters of a node that has been up for days.
        return str(10**12 + 7919 * (1000 * number + at))
    own = {"node_guid": f"a088:c203:00aa:{number:04x}", "ifindex": str(2 + number)}
    return own.get(file.name, content)
