"""The control groups of a run, in both versions of the kernel's interface.

A group has the same path in each hierarchy. Version 1 has a hierarchy for each controller, version 2 has one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNIFIED = (ROOT / "cgroup.controllers").exists()
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
"""What the kubelet asks for."""

SHARE = 8
"""How much CPU time a run gets where others want it too, in parts of what a single other process gets.

Three machines share one part otherwise, and each second that is measured would be the machine's, not ours.
"""


def hierarchies() -> list[Path]:
    """Return where hierarchies are mounted."""
    if UNIFIED:
        return [ROOT]
    return [folder for folder in sorted(ROOT.iterdir()) if not folder.is_symlink() and folder.is_dir()]


def make(group: str) -> None:
    """Make a group, with what a kubelet needs of it; its parents are groups or the root."""
    for hierarchy in hierarchies():
        folder = hierarchy / group
        folder.mkdir(exist_ok=True)
        if UNIFIED:
            enabled = (folder.parent / "cgroup.subtree_control").read_text(encoding="ascii").split()
            for controller in _CONTROLLERS:
                if controller not in enabled:
                    (folder.parent / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
        elif hierarchy.name == "cpuset":
            # A new one is empty, and takes no process.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (folder / file).write_text(
                    (folder.parent / file).read_text(encoding="ascii"), encoding="ascii"
                )


def prefer(group: str) -> None:
    """Give a group its share of the CPU time."""
    if UNIFIED:
        (ROOT / group / "cpu.weight").write_text(str(100 * SHARE), encoding="ascii")
    else:
        for folder in (ROOT / name / group for name in ("cpu", "cpu,cpuacct")):
            if folder.is_dir():
                (folder / "cpu.shares").write_text(str(1024 * SHARE), encoding="ascii")


def files_to_join(group: str) -> list[Path]:
    """Return the files that take a process into a group."""
    return [hierarchy / group / "cgroup.procs" for hierarchy in hierarchies()]


def below(group: str, name: str) -> set[str]:
    """Return the groups of this name somewhere below another one."""
    found = (
        (hierarchy, each) for hierarchy in hierarchies() for each in (hierarchy / group).glob(f"**/{name}")
    )
    return {str(each.relative_to(hierarchy)) for hierarchy, each in found}


def processes(group: str) -> set[int]:
    """Return the processes in a group and below it, as this PID namespace knows them."""
    ids: set[int] = set()
    for folder in _folders(group):
        with suppress(OSError):
            ids.update(int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split())
    return ids - {0}


def kill(group: str, *, seconds: float = 20) -> None:
    """End each process in a group by force; TimeoutError if one stays."""
    if not UNIFIED:
        # In version 1 what is frozen does not die.
        for folder in _folders(group):
            with suppress(OSError):
                (folder / "freezer.state").write_text("THAWED", encoding="ascii")
    end = time.monotonic() + seconds
    while ids := processes(group):
        for process in ids:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > end:
            msg = f"processes {sorted(ids)} of {group} do not end"
            raise TimeoutError(msg)
        time.sleep(0.02)


def freeze(group: str, *, frozen: bool, seconds: float = 20) -> None:
    """Stop all processes in a group and below it, or let them go on; return when it is so."""
    if UNIFIED:
        (ROOT / group / "cgroup.freeze").write_text(str(int(frozen)), encoding="ascii")
        file, state = ROOT / group / "cgroup.events", f"frozen {int(frozen)}"
    else:
        file, state = ROOT / "freezer" / group / "freezer.state", "FROZEN" if frozen else "THAWED"
        file.write_text(state, encoding="ascii")
    end = time.monotonic() + seconds
    while state not in file.read_text(encoding="ascii"):
        if time.monotonic() > end:
            msg = f"{group} is not {state}"
            raise TimeoutError(msg)
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a group use."""

    memory: float
    """MiB, without files that the kernel could forget: what the kubelet compares with requests."""
    most: float
    """MiB, files included: the most since the start, or now where the kernel keeps no maximum."""
    limit: float
    """MiB."""
    cpu: float
    """Seconds since the start."""


def usage(group: str, name: str) -> Usage:
    """Return what a group of this name somewhere below another one uses."""

    def numbers(controller: str, file: str) -> dict[str, int]:
        hierarchy = ROOT if UNIFIED else ROOT / controller
        folder = next((hierarchy / group).glob(f"**/{name}"))
        if UNIFIED and not (folder / file).exists():
            file = "memory.current"
        # A file has one number, or a line with a name and a number for each.
        lines = (line.split() for line in (folder / file).read_text(encoding="ascii").splitlines())
        return {" ".join(words[:-1]): int(words[-1]) for words in lines}

    if UNIFIED:
        used, most, limit = "memory.current", "memory.peak", "memory.max"
        inactive, cpu = "inactive_file", numbers("cpu", "cpu.stat")["usage_usec"] / 1e6
    else:
        used, most, limit = (f"memory.{each}_in_bytes" for each in ("usage", "max_usage", "limit"))
        inactive, cpu = "total_inactive_file", numbers("cpuacct", "cpuacct.usage")[""] / 1e9
    files = numbers("memory", "memory.stat")[inactive]
    return Usage(
        memory=(numbers("memory", used)[""] - files) / 2**20,
        most=numbers("memory", most)[""] / 2**20,
        limit=numbers("memory", limit)[""] / 2**20,
        cpu=cpu,
    )


def remove(group: str, *, seconds: float = 20) -> bool:
    """Remove a group and those below it, whose processes have ended; whether nothing is left."""
    end = time.monotonic() + seconds
    while left := list(_folders(group)):
        for folder in left:
            with suppress(OSError):
                folder.rmdir()
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _folders(group: str) -> Iterator[Path]:
    """Go over the folders of a group in all hierarchies, the innermost first."""
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(hierarchy / group, topdown=False):
            yield Path(folder)
