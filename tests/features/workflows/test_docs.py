"""docs/workflows.md has a heading for each notification and each schedule."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.notify_types import NOTIFY_TYPES, SCHEDULE_TYPES
from tests.docs.pages import headings


@pytest.mark.parametrize("name", sorted({*NOTIFY_TYPES, *SCHEDULE_TYPES}))
def test_every_notification_of_workflows_and_every_schedule_has_its_heading(name: str) -> None:
    assert name in headings("workflows.md")
