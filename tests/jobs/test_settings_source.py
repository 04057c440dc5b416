"""Settings from a ConfigMap: which key, and what is said if they can't be used."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli import main
from jobs.runtime.environment import Target
from jobs.runtime.settings_source import settings_from
from reconciler.model.content import ConfigMapName
from reconciler.model.errors import SettingsError, Unauthorized
from reconciler.model.limits import LARGEST_SETTINGS
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


def test_a_missing_permission_is_named(load: Load) -> None:
    with pytest.raises(Unauthorized, match=r"configmap/ours/policy: .* needs get configmaps in ours"):
        load(status(403, "Forbidden", "no"))


@pytest.mark.parametrize("command", ["check-config", "windows"])
def test_commands_about_settings_read_a_config_map(command: str, tmp_path: Path) -> None:
    stub = Stub(lambda _: config_map({"maintenance.yaml": "timeZone: Europe/Berlin"}))
    try:
        kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")
        code = main([command, str(MAP), "--kubeconfig", str(kubeconfig)])
    finally:
        stub.close()
    assert code == 0
    assert [asked.path for asked in stub.asked] == [PLACE]


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
