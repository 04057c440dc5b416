"""Law 25: what is installed is what is offered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from jobs.runtime.process import Observers, Surroundings, processes
from reconciler import plugins
from reconciler.report.columns import columns, for_people
from reconciler.report.kinds import action_kinds, hold_kinds
from reconciler.settings.mistakes import keys
from reconciler.settings.schema import PolicyKey, whole_settings

Plugin = tuple[str, str]
"""The room of a plugin, and its name there."""

ROOMS = {room: plugins.names(room) for room in ("features", "sources")}
EVERY: frozenset[Plugin] = frozenset((room, name) for room, names in ROOMS.items() for name in names)


RULES = sorted((Path(__file__).parents[2] / "k8s/monitoring").glob("*rules.yaml"))

METRIC = re.compile(r"node_maintenance_\w+?(?=_(?:bucket|sum|count)\b|\b)")
"""A metric in an expression, without the ending that a histogram adds."""

ALERTS: Mapping[str, frozenset[str]] = {
    rule["alert"]: frozenset(METRIC.findall(rule["expr"]))
    for file in RULES
    for group in yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]["groups"]
    for rule in group["rules"]
}
"""The metrics that each alert asks for."""


def offered(installed: frozenset[Plugin]) -> frozenset[tuple[str, str]]:
    """Return what the program offers with these plugins: each thing with its kind."""
    with pytest.MonkeyPatch.context() as patch:
        chosen = {
            room: tuple(name for name in names if (room, name) in installed) for room, names in ROOMS.items()
        }
        patch.setattr(plugins, "names", chosen.__getitem__)
        _forget()
        try:
            return frozenset(chain.from_iterable(_kinds()))
        finally:
            _forget()


def _forget() -> None:
    for made in (whole_settings, hold_kinds, action_kinds, columns, for_people, processes):
        made.cache_clear()


def _kinds() -> Iterator[Iterator[tuple[str, str]]]:
    # What one plugin adds to policies stands below the conditions that another one brings as well.
    added = tuple(
        f".*.{to_camel(part.key)}" for part in whole_settings().of_features if isinstance(part, PolicyKey)
    )
    yield (("key", key.name) for key in keys(whole_settings()) if not key.name.endswith(added))
    yield (("hold", code) for code in hold_kinds())
    yield (("action", name) for name in action_kinds())
    yield (("column", key) for key in columns())
    yield (("source", source.name) for module in plugins.modules("source") for source in module.SOURCES)
    yield (("feature", module.FEATURE.name) for module in plugins.modules("feature"))
    yield (("command", name) for face in plugins.faces() for name in getattr(face, "COMMANDS", ()))
    yield (("process", module.__name__) for module in plugins.modules("process"))
    catalogues = (module.FAMILIES for module in plugins.modules("catalogue"))
    families = chain(*catalogues, *(process.families for process in processes()))
    metrics = frozenset(family.name for family in families)
    yield (("metric", name) for name in metrics)
    yield (("alert", name) for name, asks in ALERTS.items() if asks <= metrics)
    yield (
        ("page", path) for path in Observers().add(Surroundings("serve", {}, print, listens=True)).documents
    )


@cache
def core() -> frozenset[tuple[str, str]]:
    """Return what the program offers without any plugin."""
    return offered(frozenset())


@cache
def brought_by(plugin: Plugin) -> frozenset[tuple[str, str]]:
    """Return what a plugin adds to the core."""
    return offered(frozenset({plugin})) - core()


def test_each_plugin_brings_something_and_nothing_that_another_one_brings() -> None:
    assert [plugin for plugin in EVERY if not brought_by(plugin)] == []
    brought = [*chain.from_iterable(map(brought_by, EVERY))]
    assert len(brought) == len({*brought}), "two plugins bring the same"


@pytest.mark.parametrize("missing", sorted(EVERY), ids="/".join)
def test_without_a_plugin_only_what_it_brings_is_gone(missing: Plugin) -> None:
    assert offered(EVERY) - offered(EVERY - {missing}) == brought_by(missing)


@given(installed=st.frozensets(st.sampled_from(sorted(EVERY))))
def test_any_choice_of_plugins_offers_what_these_bring(installed: frozenset[Plugin]) -> None:
    assert offered(installed) == core().union(*map(brought_by, installed))


def test_with_all_plugins_each_alert_has_its_metrics() -> None:
    assert {name for kind, name in offered(EVERY) if kind == "alert"} == ALERTS.keys()
