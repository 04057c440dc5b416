"""The sections that features bring: each key once, each in its place, and none without its feature."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import reconciler.features
from reconciler import plugins
from reconciler.model.errors import SettingsError
from reconciler.model.event import Kind
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.policies import DEFAULTS
from reconciler.settings.reference import json_schema
from reconciler.settings.schema import Settings, whole_settings

SECTION = """\
from reconciler.settings.schema import FeatureSection

SECTIONS = (
    FeatureSection(key="{key}", type=int, default=1, description="d", below="{below}", after="{after}"),
)
"""


def section(key: str, *, below: str = "", after: str = "") -> str:
    """Return the text of a `settings.py` with a section of one number, by default 1."""
    return SECTION.format(key=key, below=below, after=after)


@pytest.fixture
def features(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Return what makes features with these `settings.py`, in place of all others."""

    sources = plugins.names("sources")

    def made(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").touch()
            (tmp_path / name / "settings.py").write_text(text)
        rooms = {"features": tuple(texts), "sources": sources}
        monkeypatch.setattr(plugins, "names", rooms.__getitem__)
        monkeypatch.setattr(reconciler.features, "__path__", [str(tmp_path)])
        whole_settings.cache_clear()

    yield made
    whole_settings.cache_clear()
    for name in [name for name, module in sys.modules.items() if _is_below(module, tmp_path)]:
        del sys.modules[name]


def _is_below(module: ModuleType, folder: Path) -> bool:
    return str(folder) in (getattr(module, "__file__", None) or "")


def test_a_section_stands_where_its_feature_says(features: Callable[..., None]) -> None:
    features(placed=section("placed", after="mode"), last=section("last"))

    keys = list(whole_settings().model_fields)

    assert keys[keys.index("mode") + 1] == "placed"
    assert keys[-1] == "last"
    assert getattr(parse_settings("placed: 3", "x.yaml"), "placed") == 3  # noqa: B009 - the type is made here


def test_a_section_may_stand_below_one_of_the_core(features: Callable[..., None]) -> None:
    features(placed=section("may_sing", below="drain", after="timeout"))

    settings = parse_settings("drain: {maySing: 3}", "x.yaml")

    keys = list(type(settings.drain).model_fields)
    assert keys[keys.index("timeout") + 1] == "may_sing"
    placed = next(each for each in settings.of_features if each.key == "may_sing")
    assert placed.of(settings) == 3
    assert placed.of(Settings()) == 1


@pytest.mark.parametrize(
    ("below", "key", "path", "other"),
    [
        pytest.param("", "budget", "budget", "settings/schema.py", id="of the core"),
        pytest.param("drain", "timeout", "drain.timeout", "settings/schema.py", id="below one of the core"),
        pytest.param("", "mine", "mine", "double_a/settings.py", id="of a feature"),
    ],
)
def test_two_sections_with_one_key_are_refused_with_both_files(
    features: Callable[..., None], below: str, key: str, path: str, other: str
) -> None:
    features(double_a=section("mine"), double_b=section(key, below=below))

    with pytest.raises(ValueError, match=rf"double_b/settings\.py: .*{other} has another section {path}"):
        whole_settings()


@pytest.mark.parametrize(
    ("place", "why"),
    [
        pytest.param({"after": "yours"}, "is after yours: no such key", id="after a key"),
        pytest.param({"below": "yours"}, "is below yours: no such section", id="below a section"),
        pytest.param({"below": "drain", "after": "mode"}, "is after mode: no such key", id="after another's"),
    ],
)
def test_a_place_that_does_not_exist_is_refused_with_the_file(
    features: Callable[..., None], place: dict[str, str], why: str
) -> None:
    features(nowhere=section("mine", **place))

    with pytest.raises(ValueError, match=rf"nowhere/settings\.py: mine {why}"):
        whole_settings()


KEY = """\
from reconciler.settings.schema import PolicyKey, PolicyWords


class Key(PolicyKey, frozen=True, kw_only=True):
    def words(self, policy, settings):
        return PolicyWords(waits="after it has sung") if self.in_policy(policy) == "Loud" else PolicyWords()


SECTIONS = (
    Key(key="may_sing", type=str, default="Low", description="d", conditions={conditions}, after="{after}"),
)
"""


def key_of_kinds(*, conditions: bool = True, after: str = "") -> str:
    """Return the text of a `settings.py` with the key `maySing` of each kind, by default Low."""
    return KEY.format(conditions=conditions, after=after)


def may_sing(settings: Settings, kind: Kind, condition: str = "", **labels: str) -> str:
    """Return what the policy of a kind, or of a condition, says for the key."""
    policy = settings.policies(labels)[kind, condition]
    key = next(key for key in settings.policy_keys if key.key == "may_sing")
    assert policy is not None
    return str(key.in_policy(policy))


def test_a_key_of_kinds_stands_where_its_feature_says(features: Callable[..., None]) -> None:
    features(choir=key_of_kinds(after="empty_dir"))

    schema = json_schema()["$defs"]

    for meaning in ("EventMeaning", "ConditionMeaning"):
        names = list(schema[meaning]["properties"])
        assert names[names.index("emptyDir") + 1] == "maySing"
    assert schema["EventMeaning"]["properties"]["maySing"]["description"] == "d Default: `Low`."


def test_an_override_has_the_last_word_about_a_key_of_kinds(features: Callable[..., None]) -> None:
    features(choir=key_of_kinds())
    settings = parse_settings(
        "events: {Reboot: {maySing: Loud}, Freeze: {maySing: Low}}\n"
        "conditions: {DiskFull: {maySing: Loud}}\n"
        "overrides: [{nodeSelector: {quiet: 'y'}, events: {Reboot: {maySing: Low}}}]",
        "x.yaml",
    )

    assert [may_sing(settings, kind) for kind in (Kind.REBOOT, Kind.FREEZE, Kind.REDEPLOY)] == [
        "Loud",
        "Low",
        "Low",
    ]
    assert may_sing(settings, Kind.UNKNOWN, "DiskFull") == "Loud"
    assert may_sing(settings, Kind.REBOOT, quiet="y") == "Low"
    # What the file says as it is by default is the default.
    assert settings.policies({}).of_kind(Kind.FREEZE) == DEFAULTS[Kind.FREEZE]
    assert settings.policies({"quiet": "y"}).of_kind(Kind.REBOOT) == DEFAULTS[Kind.REBOOT]


def test_what_a_key_of_kinds_means_is_explained(features: Callable[..., None]) -> None:
    features(choir=key_of_kinds())

    text = explain_settings(parse_settings("events: {Reboot: {maySing: Loud}}", "x.yaml"))

    (said,) = (line for line in text.splitlines() if "after it has sung" in line)
    assert said.startswith(
        "  Reboot: drained, at any time, because there are no windows, after it has sung; "
    )


def test_a_key_of_kinds_may_leave_out_conditions(features: Callable[..., None]) -> None:
    features(choir=key_of_kinds(conditions=False))

    with pytest.raises(SettingsError) as raised:
        parse_settings("conditions: {DiskFull: {maySing: Loud}}", "x.yaml")

    (mistake,) = raised.value.mistakes
    assert "conditions.DiskFull.maySing: unknown key" in mistake


def test_a_key_of_kinds_behind_a_key_that_conditions_do_not_have_is_refused(
    features: Callable[..., None],
) -> None:
    features(choir=key_of_kinds(after="lead_time"))

    with pytest.raises(ValueError, match=r"choir/settings\.py: may_sing is after lead_time: no such key"):
        whole_settings()


@pytest.mark.parametrize("name", ["may_sing", "lead_time"], ids=["of a feature", "of the core"])
def test_a_key_of_kinds_that_exists_is_refused_with_both_files(
    features: Callable[..., None], name: str
) -> None:
    other = "choir_a/settings.py" if name == "may_sing" else "settings/schema.py"
    features(choir_a=key_of_kinds(), choir_b=key_of_kinds().replace("may_sing", name))

    with pytest.raises(ValueError, match=rf"choir_b/settings\.py: .*{other} has another section events"):
        whole_settings()


@pytest.mark.parametrize(
    "text",
    [
        "events: {Reboot: {maySing: Loud}}",
        "conditions: {DiskFull: {maySing: Loud}}",
        "overrides: [{events: {Reboot: {maySing: Loud}}}]",
        "overrides: [{conditions: {DiskFull: {maySing: Loud}}}]",
    ],
)
def test_without_its_feature_a_key_of_kinds_is_unknown(features: Callable[..., None], text: str) -> None:
    features(choir=key_of_kinds())
    assert parse_settings(text, "x.yaml")
    features()

    with pytest.raises(SettingsError) as raised:
        parse_settings(text, "x.yaml")

    (mistake,) = raised.value.mistakes
    assert (
        "maySing: unknown key, or that of a feature that this program is built without; the keys here are"
        in (mistake)
    )


def test_a_file_without_its_sections_is_refused(features: Callable[..., None]) -> None:
    features(gap="SECTION = ()\n")

    with pytest.raises(ImportError, match=r"gap/settings\.py has no SECTIONS"):
        whole_settings()


def test_without_its_feature_a_key_is_unknown(features: Callable[..., None]) -> None:
    features(there=section("known"))
    assert parse_settings("known: 3", "x.yaml")
    features()

    with pytest.raises(SettingsError) as raised:
        parse_settings("known: 3", "x.yaml")

    (mistake,) = raised.value.mistakes
    said = "x.yaml:1:1: known: unknown key, or that of a feature that this program is built without; the"
    assert mistake.startswith(said)
