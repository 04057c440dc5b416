"""While the pushed settings are refused, commands answer from the last revision under a red line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.revisions import Kept, to_text
from reconciler.model.content import short_hash
from tests.features.revisions.cluster import GOOD, OURS, REFUSED, Cluster
from tests.jobs.stub_cluster import OF_SETTINGS
from tests.support.builders import NOW

pytestmark = pytest.mark.heavy

POLICY = "configmap/node-maintenance/maintenance-policy"
LINE = f"settings rejected: {POLICY}/maintenance.yaml:1:1: mode: "
COMMANDS = {
    **OF_SETTINGS,
    "pods": ("pods",),
    "defer": ("defer", "n", "--until", "+2h"),
    "request": ("request", "n", "--kind", "Reboot"),
    "simulate": ("simulate", "--made-up", "7", "--nodes", "5", "--days", "2"),
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_commands_answer_from_the_last_revision_under_a_line_that_says_what_is_refused(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cluster.run(*COMMANDS[command]) == 0
    out = capsys.readouterr().out
    assert out.startswith(LINE)
    first = out.splitlines()[0]
    assert "(and 1 more mistake)" in first
    assert first.endswith("; answers from revision 1 of Sat 2026-11-21 13:00 CET (Europe/Berlin)")
    assert all(key.startswith(f"{OURS}/") for key in cluster.annotations())


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"request"}))
def test_programs_get_it_as_a_field_and_the_line_beside_the_document(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cluster.run(*COMMANDS[command], "-o", "json") == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    refused, policy = document["refusedSettings"], document["policy"]
    assert refused["source"] == f"{POLICY}/maintenance.yaml"
    assert refused["hash"] == short_hash(REFUSED.encode())
    assert [mistake.partition("yaml:")[2][:4] for mistake in refused["mistakes"]] == ["1:1:", "2:8:"]
    assert (policy["source"], policy["hash"]) == ("revision 1 of 2026-11-21T12:00:00Z", short_hash(GOOD))
    assert (policy["mode"], document["defaultSettings"]) == ("Enforce", None)
    assert LINE in printed.err


def test_the_name_of_the_installed_config_map_means_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("report", "--config", POLICY) == 0
    assert capsys.readouterr().out.startswith(LINE)


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_report_for_others_says_it_as_well(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    assert cluster.run("report", "-o", form) == 0
    assert "settings rejected: " in capsys.readouterr().out


def test_a_file_and_what_is_checked_are_refused_as_before(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text(REFUSED)
    assert cluster.run("report", "--config", str(file)) == 2
    assert cluster.run("check-config", POLICY) == 2
    assert cluster.run("sweep", "--config", POLICY) == 2
    assert "settings rejected" not in capsys.readouterr().out


def test_what_is_checked_is_compared_with_the_last_revision(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_bytes(GOOD + b"nodeSelector: {pool: none}\n")
    assert cluster.run("check-config", str(file)) == 0
    said = capsys.readouterr()
    with_both = "With revision 1 of Sat 2026-11-21 13:00 CET (Europe/Berlin), and then with these settings\n"
    assert f"{with_both}  nodes managed: 1 before, 0 after\n" in said.out
    assert "nodeSelector: selects none" in said.err

    file.write_bytes(GOOD)
    assert cluster.run("check-config", str(file)) == 0
    assert "With these settings (not compared: these are the settings in use)" in capsys.readouterr().out


def test_a_drain_by_hand_uses_the_prefix_of_the_last_revision(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("drain", "n") == 0
    assert cluster.annotations().keys() == {f"{OURS}/record", f"{OURS}/uid"}
    assert capsys.readouterr().err.startswith(LINE)


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (None, f"no last good ones are kept in configmap/node-maintenance/{KEPT_IN}"),
        ("{", f"configmap/node-maintenance/{KEPT_IN} can't be read: "),
        (
            to_text(Kept().with_text(b"mode: Never\n", NOW, "", 1, 20)),
            "the last good ones can't be used either",
        ),
        (
            to_text(Kept().with_text(GOOD, NOW, "", 1, 20)).replace(short_hash(GOOD), "0" * 12),
            "the last good ones are revision 1 of 2026-11-21T12:00:00Z, and its text is not the one",
        ),
    ],
)
def test_without_a_last_revision_that_can_be_used_the_mistakes_are_the_answer_with_the_reason(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], kept: str | None, why: str
) -> None:
    cluster.kept = kept
    assert cluster.run("windows") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{POLICY}/maintenance.yaml:1:1: mode: ")
    assert why in said
    assert "reconciler page" in said


def test_a_permission_that_is_missing_is_named(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.forbidden = True
    assert cluster.run("windows") == 2
    assert "(needs get configmaps in node-maintenance), so the last good ones" in capsys.readouterr().err
