"""Warnings of `check-config` about messages, and what to change."""

from __future__ import annotations

import pytest

from tests.settings.tables import rows
from tests.settings.test_warnings import warned

# Settings, and below them how a warning about them begins.
CASES = """\
mode: Enforce
notify: [{name: a, slack: {webhook: 'https://hooks.slack.com/x'}}]
| notify[0] (a).slack.webhook: is a secret that everyone who may read the settings can see; name it
mode: Observe
notify: [{name: a, webhook: {url: 'https://example.com/'}}]
| notify[0] (a): gets nothing in mode Observe; set another mode
mode: Enforce
notify: [{name: a, mail: {server: x, from: 'a@b.c', to: ['d@b.c']}, to: {namespaceLabel: team, domains:
  [b.c]}}]
| notify[0] (a).to.namespaceLabel: finds nobody: a label can't have a mail address; use
"""


@pytest.mark.parametrize(("text", "wanted"), rows(CASES))
def test_what_is_probably_not_meant_is_warned_of_with_what_to_change(text: str, wanted: str) -> None:
    found = warned(text)

    assert any(warning.startswith(wanted) for warning in found), found
    assert all("; " in warning for warning in found)
