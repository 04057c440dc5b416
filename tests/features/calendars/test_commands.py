"""Calendars in the answers of commands: what is shown, what is refused, and what counts when one is away."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.features.calendars.feature import IN_LEDGER, kept_calendars
from reconciler.kubernetes import ledger as ledgers
from reconciler.kubernetes.connection import LEDGER
from reconciler.model.content import CalendarText, ConfigMapName
from reconciler.model.snapshot import Ledger
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.jobs.stub_cluster import StubCluster
from tests.support.stub import Answer, Asked, status

MAP = ConfigMapName("ours", "policy")
PLACE = "/api/v1/namespaces/ours/configmaps/policy"

Load = Callable[[Answer], Settings]

FREEZE = "- {start: 2026-12-01, end: 2026-12-02}\n"
SETTINGS = "mode: Observe\ncalendars:\n- name: freeze\n  file: freeze.yaml\n"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit code, and what it printed to stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "freeze.yaml").write_text(FREEZE)
    path = tmp_path / "policy.yaml"
    path.write_text(SETTINGS)
    return path


def test_a_good_calendar_is_in_the_answer(policy: Path, run: Run) -> None:
    code, out, err = run("check-config", str(policy))

    assert code == 0
    assert "calendars[0] (freeze): a deadline wins over it" in err
    assert "Not allowed: freeze: 1 event; except at a deadline." in out


def test_a_broken_calendar_is_named_by_its_key_and_its_line(policy: Path, run: Run) -> None:
    (policy.parent / "freeze.yaml").write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n")

    code, out, err = run("check-config", str(policy))

    where = policy.parent / "freeze.yaml"
    assert (code, out) == (2, "")
    assert f"{policy}:4:3: calendars[0].file: {where}: line 2: VEVENT has no DTSTART" in err


def test_windows_show_the_names_of_events(policy: Path, run: Run) -> None:
    lines = "BEGIN:VEVENT", "SUMMARY:Year end", "DTSTART:20261219", "DTEND:20270104", "END:VEVENT"
    (policy.parent / "freeze.yaml").write_text("\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"]))

    _, out, _ = run("windows", str(policy), "--at", "2026-12-18T12:00:00Z")
    _, data, _ = run("windows", str(policy), "--at", "2026-12-18T12:00:00Z", "--output", "json")

    assert "freeze (Year end)" in out
    assert [one["summary"] for one in json.loads(data)["intervals"]] == ["Year end"]


def test_so_is_a_missing_one(policy: Path, run: Run) -> None:
    (policy.parent / "freeze.yaml").unlink()

    code, _, err = run("check-config", str(policy))

    assert code == 2
    assert f"{policy}:4:3: calendars[0].file: " in err
    assert "No such file or directory" in err


def test_objects_are_not_read_to_check_a_file(policy: Path, run: Run) -> None:
    policy.write_text("calendars: [{name: c, configMap: {name: m}}]")

    code, out, _ = run("check-config", str(policy), "--kubeconfig", "/nowhere")

    assert code == 0
    assert "Not allowed: c" in out


def test_windows_reads_them(policy: Path, run: Run) -> None:
    code, out, err = run("windows", str(policy), "--at", "2026-12-01T12:00", "--output", "json")

    assert (code, err) == (0, "")
    assert json.loads(out)["notAllowed"] == "freeze"


def test_windows_goes_on_without_a_calendar_that_it_cant_read(policy: Path, run: Run) -> None:
    (policy.parent / "freeze.yaml").unlink()

    code, out, err = run("windows", str(policy), "--at", "2026-12-01T12:00")

    assert code == 0
    assert "not allowed: freeze (can't be read: " in out
    assert err.startswith("warning: the calendar freeze can't be read: ")


@pytest.mark.parametrize("command", ["windows", "check-config", "simulate"])
@pytest.mark.parametrize("rights", [True, False])
def test_a_calendar_that_is_away_counts_as_the_reconciler_has_kept_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, rights: bool
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text("calendars: [{name: sale, configMap: {name: gone}, absolute: true}]")
    places = parse_settings(file.read_text(), str(file)).calendar_places()
    freeze = "- {start: 2020-01-01, end: 2099-01-01, reason: year end}"
    kept = kept_calendars(places, {"sale": CalendarText(freeze)})
    with closing(_Kept(tmp_path, rights=rights)) as there:
        there.ledger = ledgers.to_data(IN_LEDGER.put(Ledger(), kept), {})
        more = {"simulate": ["--made-up", "1", "--days", "1", "--nodes", "2"]}.get(command, [])
        config = ["--config", str(file)] if command == "simulate" else [str(file)]
        assert there.run(command, *config, *more) == 0
    out, err = capsys.readouterr()
    assert "the calendar sale can't be read: " in err
    assert ("what it said before counts until" in err) is rights
    assert ("needs the permission get configmaps" in err) is not rights
    if command == "windows":
        assert ("until Thu 2099-01-01" in out) is rights


class _Kept(StubCluster):
    """A cluster without the ConfigMap of the calendar, and with the ledger, which may be read or not."""

    def __init__(self, folder: Path, *, rights: bool) -> None:
        super().__init__(folder)
        self._rights = rights

    def instead(self, asked: Asked) -> Answer | None:
        if asked.path.endswith("/configmaps/gone"):
            return status(404, "NotFound", "nothing is here")
        if asked.path.endswith(LEDGER) and not self._rights:
            return status(403, "Forbidden", "not for you")
        return None


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_windows_draws_them_for_a_person(
    policy: Path, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    _, out, _ = run("windows", str(policy), "--at", "2026-12-01T12:00")

    (row,) = [line for line in out.splitlines() if line.startswith("Tue 12-01")]
    assert row.endswith("x freeze")
    assert len(row) <= int(columns)
