"""A run leaves nothing behind, and other runs and the machine alone."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodes import cgroups, requirements
from tests.support.controlplane.processes import alive, wait_for

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(bool(requirements.missing()), reason="\n".join(requirements.missing())),
]

_OWNER = "import sys; from tests.nodes.supervision import run_apart; sys.exit(run_apart(*sys.argv[1:]))"


def start(module: str) -> subprocess.Popen[str]:
    """Start an owner that runs a module apart."""
    command = [sys.executable, "-c", _OWNER, module]
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True)


def links() -> set[str]:
    """Return the names of the network devices of this machine."""
    return {path.name for path in Path("/sys/class/net").iterdir()}


def left(folder: Path) -> list[str]:
    """Return what there is of a run."""
    things = [str(path) for path in cgroups.hierarchies() if (path / folder.name).exists()]
    if folder.exists():
        things.append(str(folder))
    if str(folder) in Path("/proc/self/mountinfo").read_text(encoding="utf-8"):
        things.append("a mount")
    return things


def test_a_killed_run_leaves_nothing_and_another_goes_on() -> None:
    before = links()
    with start("tests.nodes.mess") as killed, start("tests.nodes.mess") as other:
        assert killed.stdout is not None
        assert other.stdout is not None
        folder, others = Path(killed.stdout.readline().strip()), Path(other.stdout.readline().strip())
        processes = cgroups.processes(folder.name)
        assert len(processes) == 3  # process 1, the program and what it left
        assert links() == before

        killed.send_signal(signal.SIGKILL)

        wait_for("the end of all", lambda: not any(alive(process) for process in processes))
        wait_for("a machine as before", lambda: not left(folder), instead=lambda: left(folder))
        assert len(cgroups.processes(others.name)) == 3
        assert others.exists()
        other.send_signal(signal.SIGKILL)
    wait_for("a machine as before", lambda: not left(others), instead=lambda: left(others))


def test_a_run_that_ends_leaves_nothing_and_gives_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; print(sys.argv[1], flush=True); sys.exit(7)\n", encoding="utf-8"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {_OWNER}", "program"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)

    assert done.returncode == 7, done.stderr
    assert left(Path(done.stdout.strip())) == []


def test_the_kernel_of_the_machine_keeps_its_settings() -> None:
    setting = Path("/proc/sys/kernel/panic")
    before = setting.read_text(encoding="ascii")
    with start("tests.nodes.mess") as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        inside = next(iter(cgroups.processes(f"{folder.name}/node1")))
        seen = Path(f"/proc/{inside}/root{setting}").read_text(encoding="ascii")
        owner.send_signal(signal.SIGKILL)

    assert (seen, setting.read_text(encoding="ascii")) == ("10\n", before)
    wait_for("a machine as before", lambda: not left(folder), instead=lambda: left(folder))
