"""Where settings come from: ConfigMaps, a file that changes, and the Event about one that can't be used."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli import main
from jobs.runtime.environment import Target
from jobs.runtime.settings_source import (
    APART,
    REPEAT,
    SETTLE,
    Look,
    SettingsFile,
    SettingsWarning,
    settings_from,
)
from reconciler.model.content import ConfigMapName, short_hash
from reconciler.model.errors import SettingsError, Unauthorized
from reconciler.model.limits import LARGEST_SETTINGS
from reconciler.model.plan import Notice, NoticeType
from reconciler.settings.schema import Mode, Settings
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, Stub, json_answer, status

MAP = ConfigMapName("ours", "policy")
PLACE = "/api/v1/namespaces/ours/configmaps/policy"

Load = Callable[[Answer], Settings]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Load the settings of the ConfigMap that the server answers with."""
    answers: list[Answer] = []

    def answer(asked: Asked) -> Answer:
        assert (asked.method, asked.path) == ("GET", PLACE)
        return answers[-1]

    stub = Stub(answer)
    kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")

    def from_answer(one: Answer) -> Settings:
        answers.append(one)
        return settings_from(MAP, Target(str(kubeconfig)), NOW)

    yield from_answer
    stub.close()


def config_map(data: dict[str, str] | None = None, binary: dict[str, str] | None = None) -> Answer:
    return json_answer({"metadata": {"name": "policy"}, "data": data, "binaryData": binary})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"maintenance.yaml": "mode: Enforce"}, id="our key"),
        pytest.param({"maintenance.yaml": "mode: Enforce", "notes": "mode: Finish"}, id="our key of several"),
        pytest.param({"policy.yml": "mode: Enforce"}, id="the only key"),
    ],
)
def test_the_settings_are_our_key_or_the_only_one(load: Load, data: dict[str, str]) -> None:
    found = load(config_map(data))

    assert found.mode is Mode.ENFORCE
    assert found.version is not None
    assert found.version.age(NOW) == timedelta()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(status(404, "NotFound"), "there is no such ConfigMap", id="missing"),
        pytest.param(
            config_map(), "it has no keys; put the settings into the key maintenance.yaml", id="empty"
        ),
        pytest.param(
            config_map({"a.yaml": "", "b.yaml": ""}),
            "it has several keys, and none is maintenance.yaml: 'a.yaml', 'b.yaml'",
            id="several keys",
        ),
        pytest.param(
            config_map({f"k{number}": "" for number in range(9)}), "and 4 more", id="many keys are not listed"
        ),
        pytest.param(
            config_map({"maintenance.yaml": "mode: Sometimes"}),
            "maintenance.yaml:1:1: mode: ",
            id="a mistake",
        ),
        pytest.param(
            config_map({"maintenance.yaml": "#" * (LARGEST_SETTINGS + 1)}), "is larger than", id="too large"
        ),
        pytest.param(
            config_map(binary={"maintenance.yaml": base64.b64encode(b"\xff").decode()}),
            "is not UTF-8 text",
            id="no text",
        ),
        pytest.param(config_map(binary={"maintenance.yaml": "%"}), "binaryData", id="no base64"),
    ],
)
def test_what_cannot_be_used_is_a_mistake_of_the_settings(load: Load, answer: Answer, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(answer)

    assert str(caught.value).startswith("configmap/ours/policy")
    assert said in str(caught.value)


THEIRS = """\
instances:
  notify:
  - {type: slack, name: chat, config: {hook: "${SLACK_HOOK}", channel: nodes, message: hello}}
"""


def test_a_variable_that_only_the_pod_has_is_a_mistake_only_for_who_acts(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load(config_map({"maintenance.yaml": THEIRS})).receivers

    stub = Stub(lambda _: config_map({"maintenance.yaml": THEIRS}))
    try:
        kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")
        assert main(["sweep", "--config", str(MAP), "--kubeconfig", str(kubeconfig)]) == 2
    finally:
        stub.close()
    assert "SLACK_HOOK" in capsys.readouterr().err


def test_a_missing_permission_is_named(load: Load) -> None:
    with pytest.raises(Unauthorized, match=r"configmap/ours/policy: .* needs get configmaps in ours"):
        load(status(403, "Forbidden", "no"))


@pytest.mark.parametrize(
    ("command", "also"),
    [("check-config", ["/api/v1/nodes"]), ("windows", [])],
    ids=["check-config", "windows"],
)
def test_commands_about_settings_read_a_config_map(command: str, also: list[str], tmp_path: Path) -> None:
    stub = Stub(lambda _: config_map({"maintenance.yaml": "timeZone: Europe/Berlin"}))
    try:
        kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")
        code = main([command, str(MAP), "--kubeconfig", str(kubeconfig)])
    finally:
        stub.close()
    assert code == 0
    # What check-config reads besides is compared with the settings, and says nothing if it can't be read.
    assert [asked.path for asked in stub.asked][:2] == [PLACE, *also]


@pytest.mark.parametrize(
    "name", ["configmap/", "configmap/a", "configmap/a/b/c", "configmap/A/b", "configmap/../b"]
)
@pytest.mark.parametrize(
    "arguments", [["check-config"], ["windows"], ["sweep", "--config"], ["report", "--config"]]
)
def test_a_broken_name_is_a_usage_error(arguments: list[str], name: str) -> None:
    from jobs.cli import commands

    found = CliRunner().invoke(commands, [*arguments, name])

    assert found.exit_code == 2
    assert "is not configmap/NAMESPACE/NAME" in " ".join(found.output.split())


BEGAN = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
GOOD = b"mode: Enforce\n"
BETTER = b"mode: Finish\n"


class Clock:
    """Both clocks of the process: seconds since the start."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "maintenance.yaml"
    file.write_bytes(GOOD)
    return file


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(path: Path, clock: Clock) -> SettingsFile:
    return SettingsFile(path, clock.now, clock.monotonic)


def test_without_a_good_file_there_is_nothing_to_begin_with(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(SettingsError, match="can't be read"):
        SettingsFile(tmp_path / "none", clock.now)


def test_the_settings_in_force_have_the_hash_of_their_file_and_the_moment_of_loading(
    file: SettingsFile, path: Path, clock: Clock
) -> None:
    clock.seconds = 60
    path.write_bytes(BETTER)
    assert file.look() is Look.LOADED

    assert file.settings.mode is Mode.FINISH
    assert file.settings.version is not None
    assert file.settings.version.hash == short_hash(BETTER)
    assert file.settings.version.loaded == BEGAN + timedelta(seconds=60)
    assert file.mistake() == ""


@pytest.mark.parametrize(
    "content", [b"mode: Enforced\n", b"mode: \xff\xfe", b"mode: " + b"[" * 100_000, b"\x00", b"#" * 2_000_000]
)
def test_a_broken_file_is_rejected_once_and_said_until_it_is_repaired(
    file: SettingsFile, path: Path, clock: Clock, content: bytes
) -> None:
    clock.seconds = 60
    path.write_bytes(content)
    assert [file.look(), file.look()] == [Look.REJECTED, Look.SAME]

    assert file.settings.mode is Mode.ENFORCE
    assert file.mistake().startswith(
        f"settings rejected at 2026-11-21T22:01:00Z, those of hash {short_hash(GOOD)} still apply: {path}:"
    )
    version = file.settings.version
    path.write_bytes(GOOD)
    assert file.look() is Look.RESTORED
    assert (file.settings.version, file.mistake()) == (version, "")


@pytest.mark.parametrize("way", ["missing", "empty"])
def test_a_file_that_is_missing_or_empty_for_a_moment_changes_nothing(
    file: SettingsFile, path: Path, clock: Clock, way: str
) -> None:
    for _ in range(3):
        if way == "missing":
            path.unlink()
        else:
            path.write_bytes(b"")
        assert file.look() is Look.SAME
        assert file.again() == SETTLE
        clock.seconds += SETTLE - 0.1
        assert file.look() is Look.SAME
        assert file.mistake() == ""
        path.write_bytes(GOOD)
        assert file.look() is Look.SAME
        assert file.again() is None


def test_a_file_that_stays_away_is_rejected(file: SettingsFile, path: Path, clock: Clock) -> None:
    path.unlink()
    file.look()
    clock.seconds += SETTLE
    assert file.look() is Look.REJECTED
    assert "can't be read: No such file or directory" in file.mistake()
    assert file.again() is None
    assert file.settings.mode is Mode.ENFORCE


def test_a_file_that_stays_empty_means_the_defaults(file: SettingsFile, path: Path, clock: Clock) -> None:
    path.write_bytes(b"")
    file.look()
    clock.seconds += SETTLE
    assert file.look() is Look.LOADED
    assert file.settings.mode is Mode.OBSERVE


def test_a_config_map_that_is_swapped_is_loaded_without_a_gap(tmp_path: Path, clock: Clock) -> None:
    def publish(number: int, content: bytes) -> None:
        """As the kubelet does: a new folder, and the link `..data` is renamed over the old one."""
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        (folder / "maintenance.yaml").write_bytes(content)
        (tmp_path / "..fresh").symlink_to(folder.name)
        os.replace(tmp_path / "..fresh", tmp_path / "..data")

    publish(1, GOOD)
    (tmp_path / "maintenance.yaml").symlink_to("..data/maintenance.yaml")
    file = SettingsFile(tmp_path / "maintenance.yaml", clock.now, clock.monotonic)

    publish(2, GOOD)
    assert file.look() is Look.SAME
    publish(3, BETTER)
    assert file.look() is Look.LOADED
    assert file.settings.mode is Mode.FINISH


OVER = "the newest settings are in use again"


class Events:
    """Takes notices, or fails to write them; and the clock."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.works = True
        self.now = 0.0

    def notify(self, notice: Notice) -> bool:
        rejected = notice.reason == "SettingsRejected"
        assert rejected or (notice.reason, notice.message) == ("SettingsAccepted", OVER)
        assert notice.type is (NoticeType.WARNING if rejected else NoticeType.NORMAL)
        self.tried.append(notice.message)
        return self.works

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def warning(events: Events) -> SettingsWarning:
    return SettingsWarning(events.notify, events.monotonic)


def test_a_mistake_is_written_once_and_again_after_an_hour(events: Events, warning: SettingsWarning) -> None:
    for _ in range(int(REPEAT / 30)):
        warning.report("mode is wrong")
        events.now += 30
    assert events.tried == ["mode is wrong"]
    warning.report("mode is wrong")
    assert len(events.tried) == 2


def test_an_event_that_could_not_be_written_is_tried_again(events: Events, warning: SettingsWarning) -> None:
    events.works = False
    warning.report("mode is wrong")
    warning.report("mode is wrong")
    assert len(events.tried) == 1
    events.works, events.now = True, APART
    warning.report("mode is wrong")
    warning.report("mode is wrong")
    assert len(events.tried) == 2


def test_a_file_that_keeps_breaking_costs_one_event_a_minute(
    events: Events, warning: SettingsWarning
) -> None:
    for second in range(600):
        events.now = second
        warning.report(f"mistake {second}")
    assert len(events.tried) == 10


def test_a_file_that_breaks_and_is_repaired_each_second_costs_two_events_a_minute(
    events: Events, warning: SettingsWarning
) -> None:
    for second in range(600):
        events.now = second
        warning.report("" if second % 2 else "mode is wrong")
    assert len(events.tried) == 20


def test_a_repaired_file_ends_it_at_once_and_the_same_mistake_later_is_news(
    events: Events, warning: SettingsWarning
) -> None:
    warning.report("")
    warning.report("mode is wrong")
    warning.report("")
    warning.report("")
    events.now = APART
    warning.report("mode is wrong")
    assert events.tried == ["mode is wrong", OVER, "mode is wrong"]


def test_an_end_that_could_not_be_written_is_tried_again_also_after_a_warning_without_an_answer(
    events: Events, warning: SettingsWarning
) -> None:
    events.works = False
    warning.report("mode is wrong")
    warning.report("")
    warning.report("")
    events.works, events.now = True, APART
    warning.report("")
    warning.report("")
    assert events.tried == ["mode is wrong", OVER, OVER]
