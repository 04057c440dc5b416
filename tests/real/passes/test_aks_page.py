"""docs/aks.md, played on the real API server: each line that the page quotes is printed by its step.

The cluster is that of `nox -s cluster`. What helm and the rollouts print is not in the page's blocks.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from tests.real.passes.processes import Programs
from tests.support.controlplane.__main__ import POOLS, add_workloads
from tests.support.controlplane.fill import fill, no_vm_event, patch_conditions, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

PAGE = (Path(__file__).parents[3] / "docs" / "aks.md").read_text(encoding="utf-8")
NODE = "aks-np-12345678-vmss000000"
OTHER = "aks-np-12345678-vmss000001"

_ROW = re.compile(r"^(?:\S|  \w[\w ]{8} | +“)")
"""The beginning of a line that is no continuation of the one before it."""

_MOMENT = re.compile(r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: CES?T \(Europe/Berlin\))?")
_OTHERWISE = re.compile(
    r"(?<=on )aks-np-\w+-vmss\w+|(?<=by )\S+(?: \(\S+\))?(?= (?:at|since) )|(?<=cluster )\S+, context \S+"
    r"|(?<=evict )\d+|(?<=skip )\d+|\bin \d+m, (?:at )?\d\d:\d\d\b"
    r"|\((?:in (?:\d+[hms])+|(?:less than )?(?:\d+[hms])+ ago|now)\)"
)
"""What differs from one cluster to the next: nodes that the scheduler chose, people, names."""


def quoted(after: str) -> list[str]:
    """The lines of the first block of output after this text of the page, each with its continuation."""
    lines: list[str] = []
    for line in PAGE.partition(after)[2].partition("```text\n")[2].partition("```")[0].splitlines():
        if not lines or _ROW.match(line):
            lines.append(line)
        elif line:
            lines[-1] += f" {line.strip()}"
    assert lines, after
    return [plain(line) for line in lines]


def plain(text: str) -> str:
    """The text without what depends on the time, the cluster, and the width of the terminal."""
    return " ".join(_OTHERWISE.sub("X", _MOMENT.sub("T", text)).split())


def missing(after: str, printed: str) -> list[str]:
    """The lines of that block that were not printed, in their order; "…" ends a line that goes on."""
    rest = iter([plain(line) for line in printed.splitlines()])

    def was_printed(line: str) -> bool:
        start, cut, _ = line.partition("…")
        return any(each.startswith(start.strip()) if cut else each == line for each in rest)

    return [line for line in quoted(after) if not was_printed(line)]


def settings(*titles: str) -> str:
    """The settings of the values in these sections, as the chart joins them; without the time to settle.

    The window begins in ten hours, so that it is closed whenever the test runs.
    """
    joined: dict[str, Any] = {"uncordon": {"settle": "0s"}}
    for title in titles:
        values = yaml.safe_load(
            PAGE.partition(f"\n## {title}\n")[2].partition("```yaml\n")[2].partition("```")[0]
        )
        joined.update(values["settings"])
    (window,) = joined["windows"]
    hour = datetime.now(ZoneInfo(joined["timeZone"])).hour + 10
    joined["windows"] = [window | {"start": f"{hour % 24:02}:00", "end": f"{(hour + 7) % 24:02}:00"}]
    return yaml.safe_dump(joined)


def test_the_page_prints_what_the_program_prints(cluster: ControlPlane, programs: Programs) -> None:
    fill(cluster.kubeconfig, nodes=12, pools=POOLS)
    add_workloads(cluster.api)
    wait_for("the pods", lambda: _running_pods(cluster) == 32)
    programs.configure(settings("3. Install it"))
    config = ("--config", str(programs.config))

    def run(*arguments: str, code: int = 0) -> str:
        done = programs.run(*arguments)
        assert done.code == code, done.err
        return done.out

    assert missing("reconciler readiness\n", run("readiness", *config)) == []
    assert missing("reconciler report\n", run("report")) == []

    # Minutes before the latest start, however late the command runs.
    soon = datetime.now(UTC) + timedelta(minutes=25)
    patch_conditions(cluster.api, OTHER, vm_event("Reboot", soon))
    # A list may come from a cache of the API server.
    wait_for("a line for the node", lambda: OTHER in run("report"))
    assert missing("When Azure announces something", run("report")) == []
    patch_conditions(cluster.api, OTHER, no_vm_event())

    programs.configure(settings("3. Install it", "5. Enforce on one pool"))
    programs.start("serve", "--every", "1s").wait_for("leading")
    asked = ("--kind", "Reboot", "--not-before", "+15m", "--reason", "first drain")
    assert missing("\n## 6. ", run("request", NODE, *asked, *config)) == []
    wait_for("the drain", lambda: "drained at" in run("report", NODE))
    assert missing("Seconds later its pods are gone", run("report", NODE)) == []

    held = run("hold", "--all", "--now", "--reason", "incident 4711", *config)
    assert missing("## Stop it", held) == []
    run("resume", "--all", *config)

    run("request", NODE, "--cancel", *config)
    wait_for("the uncordon", lambda: "nothing to report" in run("report", NODE))
    columns = "custom-columns=REASON:.reason,MESSAGE:.message"
    assert f"-o {columns}" in PAGE
    asked_kubectl = [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "get", "events", "-o", columns]
    wait_for("the Events", lambda: "MaintenanceDone" in _output(asked_kubectl))
    # Events of the same second have no order.
    printed = sorted(_output(asked_kubectl).splitlines(), key=_in_quoted_order("the node comes back"))
    assert missing("the node comes back", "\n".join(printed)) == []


def _in_quoted_order(after: str) -> Callable[[str], int]:
    first_words = [line.split()[0] for line in quoted(after)]
    return lambda line: first_words.index(word) if (word := line.split()[0]) in first_words else -1


def _running_pods(cluster: ControlPlane) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in cluster.api.list("pods"))


def _output(command: Sequence[object]) -> str:
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=True, timeout=120
    ).stdout
