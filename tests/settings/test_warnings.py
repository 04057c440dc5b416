"""Warnings of `check-config`: what is probably not meant, and what to change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.settings.load import parse_settings
from reconciler.settings.warnings import warnings
from tests.settings.tables import rows

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


def warned(text: str) -> list[str]:
    return [str(one) for one in warnings(parse_settings(text, "f"), NOW)]


# Settings, and below them how a warning about them begins.
CASES = """\
notAllowed: [{name: sale, start: 2026-12-01, end: 2027-01-01}]
| notAllowed[0] (sale): a deadline wins over it: nodes are drained all the same for Reboot, Redeploy,
| Preempt, Terminate; set absolute: true
conditions: {KernelReady: {for: 10m}}
| conditions.KernelReady: is KernelReady True on healthy nodes, as its name says? Then they are drained; write
| status: "False", or status: "True" if True is the fault
timeZone: EST
| timeZone: EST is UTC-05:00 all year, without summer time; write the zone of a city
timeZone: HST
| timeZone: HST is UTC-10:00 all year, without summer time; write the zone of a city, like Pacific/Honolulu
windows: [{days: [sat], timeZone: Etc/GMT-1}]
| windows[0].timeZone: Etc/GMT-1 is UTC+01:00 all year, without summer time; write the zone of a city
notAllowed: [{name: old, start: 2020-12-01, end: 2021-01-01}]
| notAllowed[0] (old): is over and never comes again; remove it
windows: [{name: move, start: 2020-12-01, end: 2021-01-01}]
| windows[0] (move): never opens in the next 400 days; change its times
windows: [{name: a, days: [sun]}]
notAllowed: [{name: b, days: [mon-sun], absolute: true}]
| windows[0] (a): never opens in the next 400 days, because notAllowed covers all of it; change
budget: {maxUnavailable: 0}
| budget.maxUnavailable: is 0: no drain starts before the platform, except for Preempt, Terminate once they
| are due; write 1 or more
budget: {maxUnavailable: 4, reserve: 4}
| budget.reserve: is 4, and budget.maxUnavailable is 4: no planned drain ever starts; keep
budget: {maxUnavailable: 0%}
| budget.maxUnavailable: is 0%
budget: {perPool: 0}
| budget.perPool: is 0: no drain starts
budget: {perZone: 0%}
| budget.perZone: is 0%: no drain starts
budget: {maxUnavailable: 0, exempt: []}
| budget.maxUnavailable: is 0: no drain starts before the platform; write 1 or more
budget: {maxUnavailable: 1}
| budget.maxUnavailable: is 1: the nodes of a cluster are drained one after another
budget: {perPool: 10%}
| budget.perPool: is 10%: the nodes of a pool of up to 10 are drained one after another
budget: {spacing: 1h}
| budget.spacing: is 1h, longer than the shortest leadTime (15m)
budget: {exempt: [Terminate]}
| budget.exempt: does not name Preempt: its node waits for a place, and is lost with its pods meanwhile; add
| Preempt
budget: {exempt: [Preempt, Terminate, Freeze]}
| budget.exempt: names Freeze, which is never drained; set events.Freeze.drain: true
drain: {timeout: 1h}
| drain.timeout: is 1h, longer than events.Reboot.leadTime (15m), events.Redeploy.leadTime (15m),
| events.Terminate.leadTime (15m): a drain
overrides: [{events: {Reboot: {leadTime: 5m}}}]
| drain.timeout: is 30m, longer than overrides[0].events.Reboot.leadTime (5m): a drain
drain: {escalation: {warnAfter: 30m}}
| drain.escalation.warnAfter: is not shorter than drain.timeout (30m): nothing is warned of; shorten
budget: {maxUnavailable: 5}
drain: {maxConcurrentNodes: 2}
| drain.maxConcurrentNodes: is 2, less than budget.maxUnavailable (5): nodes may stand cordoned
windows: [{name: a, days: [sun]}]
events: {Terminate: {outsideWindow: Never}}
| events.Terminate.outsideWindow: is Never: outside a window the node is lost with its pods; write
windows: [{name: a, days: [sun]}]
events: {Freeze: {drain: true, leadTime: 0s}}
| events.Freeze.leadTime: is 0s: outside a window the drain starts with the maintenance itself, which is too
| late; write 15m
windows: [{name: a, days: [sun]}]
overrides: [{nodeSelector: {matchLabels: {a: b}}, events: {Reboot: {leadTime: 0s}}}]
| overrides[0].events.Reboot.leadTime: is 0s: outside a window the drain starts with
"""


@pytest.mark.parametrize(("text", "wanted"), rows(CASES))
def test_what_is_probably_not_meant_is_warned_of_with_what_to_change(text: str, wanted: str) -> None:
    found = warned(text)

    assert any(one.startswith(wanted) for one in found), found
    assert all("; " in one for one in found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="the defaults"),
        pytest.param("notAllowed: [{start: 2026-12-01, end: 2027-01-01, absolute: true}]", id="absolute"),
        pytest.param(
            "notAllowed: [{start: 2026-12-01, end: 2027-01-01}]\nevents: {Reboot: {outsideWindow: Never}, "
            "Redeploy: {outsideWindow: Never}, Preempt: {outsideWindow: Never}, "
            "Terminate: {outsideWindow: Never}}",
            id="no deadline counts",
        ),
        pytest.param("windows: [{days: [sun]}]", id="a window that opens"),
        pytest.param("conditions: {KernelReady: {status: True}}", id="a condition whose status is meant"),
        pytest.param(
            "budget: {maxUnavailable: 3, perZone: 1%}\nevents: {Reboot: {leadTime: 2h}, Redeploy: "
            "{leadTime: 2h}, Terminate: {leadTime: 2h}}",
            id="notice enough for a wave",
        ),
        pytest.param("drain: {timeout: 10m}", id="a timeout within the notice"),
        pytest.param("budget: {spacing: 5m}", id="spacing within the notice"),
        pytest.param((ROOT / "k8s/base/maintenance.yaml").read_text("utf-8"), id="as shipped"),
    ],
)
def test_what_is_fine_is_not_warned_of(text: str) -> None:
    assert warned(text) == []


def test_warnings_go_to_stderr_and_fail_only_when_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text("budget: {maxUnavailable: 0}\n", encoding="utf-8")

    assert main(["check-config", str(file)]) == 0
    printed = capsys.readouterr()
    assert f"{file} is valid." in printed.out
    assert printed.err.startswith(f"warning: {file}: budget.maxUnavailable: is 0: ")
    assert main(["check-config", "--strict", str(file)]) == 1

    file.write_text("mode: Enforce\n", encoding="utf-8")
    assert main(["check-config", "--strict", str(file)]) == 0
    file.write_text("mode: Enforced\n", encoding="utf-8")
    assert main(["check-config", "--strict", str(file)]) == 2
