"""What new settings no longer guard is said: at `check-config`, and for an hour by whoever makes passes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.coverage import SHOWN_FOR, SettingsSeen
from reconciler.model.values import decoded, encoded
from reconciler.settings.coverage import coverage_of, losses, seen_now
from tests.support.builders import NOW, settings

NODES = [({"pool": "web"}, 3), ({"pool": "gpu"}, 1), ({"pool": "old", "ignored": "true"}, 1)]
TYPO = "nodeSelector: {pol: web}"


def said(before: str, after: str) -> list[str]:
    """The keys of what the second settings no longer do."""
    covered = [coverage_of(settings(text), NODES) for text in (before, after)]
    return [each.key for each in losses(*covered)]


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("", "budget: {spacing: 1m}", []),
        ("", "mode: Observe", ["mode"]),
        ("mode: Observe", "mode: Finish", []),
        ("", "events: {Redeploy: {drain: false}}", ["events.Redeploy.drain"]),
        ("events: {Redeploy: {drain: false}}", "", []),
        ("conditions: {Bad: {for: 5m}}", "", ["conditions.Bad"]),
        ("", "sources: {nodeConditions: {enabled: false}}", ["sources.nodeConditions"]),
    ],
)
def test_what_turns_cases_off_is_named_by_its_key(before: str, after: str, keys: list[str]) -> None:
    assert said(before, after) == keys


@pytest.mark.parametrize(
    ("after", "keys"),
    [
        (TYPO, ["nodeSelector"]),
        ("nodeSelector: {pool: gpu}", ["nodeSelector"]),
        ("nodeSelector: {pool: web}", []),
    ],
    ids=["none is left", "more than half are lost", "less than half are lost"],
)
def test_settings_that_lose_most_nodes_are_named(after: str, keys: list[str]) -> None:
    assert said("", after) == keys


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("pool: web", "pool: wbe", ["overrides[0].nodeSelector"]),
        ("pool: web", "", ["overrides[0].nodeSelector"]),
        ("pool: web", "pool: gpu", []),
        ("pool: wbe", "pool: bew", []),
        ("", "", []),
    ],
    ids=["none", "all", "others", "none before either", "all before too"],
)
def test_a_selector_that_selects_all_or_none_where_it_selected_some_is_named(
    before: str, after: str, keys: list[str]
) -> None:
    texts = (f"overrides: [{{nodeSelector: {{{selector}}}}}]" for selector in (before, after))
    assert said(*texts) == keys


def later(seen: SettingsSeen | None, text: str, now: datetime = NOW, times: int = 1) -> SettingsSeen:
    """What is known after a pass with these settings, when the cluster has so many times the nodes."""
    nodes = [(labels, count * times) for labels, count in NODES]
    found = seen_now(seen, settings(text), nodes, now)
    # The lock keeps it as text.
    assert decoded(SettingsSeen, encoded(found)) == found
    return found


def test_it_is_shown_for_an_hour_by_whoever_knows_what_the_lock_says() -> None:
    good = later(None, "")
    assert good.shown(NOW) == ()
    bad = later(good, TYPO)

    assert "selects none of the 5 nodes" in bad.shown(NOW)[0]
    again = later(bad, TYPO, NOW + timedelta(minutes=1))
    # What the lock says stays the same, so nothing is written for it.
    assert again == bad
    assert bad.shown(NOW + SHOWN_FOR - timedelta(seconds=1)) != ()
    assert bad.shown(NOW + SHOWN_FOR) == ()


def test_another_change_is_compared_with_what_was_before_the_first_and_a_repair_ends_it() -> None:
    first = later(later(None, ""), TYPO)
    second = later(first, "nodeSelector: {lop: web}", NOW + timedelta(minutes=1))

    assert (second.since, second.shown(NOW)) == (first.since, first.shown(NOW))
    assert later(second, "timeZone: Europe/Berlin").shown(NOW) == ()


def test_nodes_that_come_and_go_say_nothing_of_the_settings() -> None:
    good = later(None, "")

    assert later(good, "", times=2) == good
    many = later(good, "", times=3)
    assert (many.coverage.nodes, many.lost) == (15, ())
    assert later(many, "nodeSelector: {pool: web}").lost == ()
