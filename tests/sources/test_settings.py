"""The sections of the sources: their defaults, mistakes and warnings."""

from __future__ import annotations

import pytest

from reconciler.settings.load import parse_settings
from tests.settings.tables import rows
from tests.settings.test_load import mistakes
from tests.settings.test_warnings import warned

EVERY_DEFAULT = """\
sources:
  nodeConditions: {enabled: true, staleAfter: 15m}
  imds: {enabled: true}
  requests: {enabled: true}
  arm: {enabled: false, every: 15m}
  aws: {enabled: false, every: 5m, ahead: null}
"""
NONE = "sources: {nodeConditions: {enabled: false}, imds: {enabled: false}, requests: {enabled: false}}"

# Settings, and below them their mistake.
MISTAKES = """\
sources: {aws: {every: 30s}}
| f:1:17: sources.aws.every: is shorter than 1m; EC2 limits the rate of calls
"""


def test_the_file_that_says_every_default_is_an_empty_one() -> None:
    assert parse_settings(EVERY_DEFAULT, "all.yaml") == parse_settings("", "empty.yaml")


@pytest.mark.parametrize(("text", "line"), rows(MISTAKES))
def test_a_mistake_says_where_what_and_what_instead(text: str, line: str) -> None:
    assert mistakes(text) == (line,)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("events: {Reboot: {acknowledge: true}}", "events.Reboot.acknowledge"),
        ("overrides: [{events: {Reboot: {acknowledge: true}}}]", "overrides[0].events.Reboot.acknowledge"),
    ],
)
def test_nothing_is_acknowledged_without_the_agents_answers(text: str, key: str) -> None:
    (line,) = mistakes(f"sources: {{imds: {{enabled: false}}}}\n{text}")

    assert key in line
    assert "sources.imds.enabled is false" in line


def test_settings_that_enable_no_source_are_warned_of() -> None:
    assert any(
        line.startswith("sources: none is enabled: no maintenance is ever seen; enable")
        for line in warned(NONE)
    )
