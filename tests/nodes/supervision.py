"""Runs a program in namespaces of its own, and leaves nothing of it behind, whoever is killed.

Three processes take part:

- The *owner* is the program that a person started. It holds the writing end of a pipe, and nobody else does.
- The *init* is process 1 of new PID, mount, network and IPC namespaces. When the pipe closes it ends, and the
  kernel kills all other processes of its namespace, with their mounts, addresses and rules.
- The *reaper* is outside of the namespaces and of the owner's session. When the pipe closes, it waits for the
  others to end, and removes the control groups and the folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.nodes import cgroups

PREFIX = "nodes-"
"""What folders and control groups of a run begin with."""

_HIDDEN = ("/run", "/var/lib/cni", "/var/log")
"""Where containerd, its plugins and the kubelet write whatever their settings say."""

_TUNED = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet sets in the kernel, which is that of the whole machine. It sees these files instead."""


def run_apart(module: str, *arguments: str) -> int:
    """Run a module of Python in namespaces of its own; return its exit code.

    The module gets the run's folder as its first argument. It is named like its control group.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    reading, writing = os.pipe()
    try:
        reaper = _start(reading, "reap", str(folder))
        init = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--"]
        with subprocess.Popen(
            [*init, *_command("init", str(folder), module, *arguments)], stdin=reading
        ) as child:
            os.close(reading)
            try:
                return child.wait()
            except KeyboardInterrupt:
                # It was interrupted, too.
                with suppress(subprocess.TimeoutExpired):
                    return child.wait(30)
                return 130
            finally:
                os.close(writing)
                writing = -1
                child.wait()
    finally:
        if writing >= 0:
            os.close(writing)
        reaper.wait()


def _start(reading: int, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(_command(*arguments), stdin=reading, start_new_session=True)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.nodes.supervision", *arguments]


def _end_with_owner() -> None:
    while os.read(0, 1024):
        pass
    os._exit(137)


def _init(folder: Path, command: Sequence[str]) -> int:
    """Be process 1: end with the owner, reap what lost its parent, and return the program's exit code."""
    threading.Thread(target=_end_with_owner, name="pipe", daemon=True).start()
    group = f"{folder.name}/runner"
    cgroups.make(folder.name)
    cgroups.prefer(folder.name)
    cgroups.make(group)
    for file in cgroups.files_to_join(group):
        file.write_text("0", encoding="ascii")
    # Without the address ::1, a program that begins may take it that there is no IPv6 here.
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    for hidden in _HIDDEN:
        if Path(hidden).is_dir():
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "nodes", hidden], check=True)
    for name, value in _TUNED.items():
        if (setting := Path("/proc/sys") / name).exists():
            shown = folder / "kernel" / name
            shown.parent.mkdir(parents=True, exist_ok=True)
            shown.write_text(f"{value}\n", encoding="ascii")
            subprocess.run(["mount", "--bind", str(shown), str(setting)], check=True)
    module, *arguments = command
    program = [sys.executable, "-m", module, str(folder), *arguments]
    # Programs that tidy up after others' runs must not find those of this machine here, whose processes they
    # can't see, nor the other way round.
    (folder / "tmp").mkdir()
    main = os.posix_spawn(sys.executable, program, {**os.environ, "TMPDIR": str(folder / "tmp")})
    while True:
        try:
            process, status = os.wait()
        except KeyboardInterrupt:
            continue
        if process == main:
            return os.waitstatus_to_exitcode(status) % 256


def _reap(folder: Path) -> int:
    """Wait for the owner's end, then for that of all others, and remove what they leave."""
    with suppress(KeyboardInterrupt):
        while os.read(0, 1024):
            pass
    group = folder.name
    with suppress(TimeoutError):
        cgroups.kill(group)
    complete = cgroups.remove(group)
    # Three disks with tens of thousands of files: Python needs several times as long.
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
    if not complete or folder.exists():
        print(f"{folder} or the control group {group} could not be removed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    role, place, *rest = sys.argv[1:]
    sys.exit(_reap(Path(place)) if role == "reap" else _init(Path(place), rest))
