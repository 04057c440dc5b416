"""The settings in the pages of sources and of what is published can be loaded."""

from __future__ import annotations

import re

import pytest

from reconciler.settings.load import parse_settings
from tests.docs.pages import written


@pytest.mark.parametrize("page", ["publishing.md", "aws.md", "esx.md", "migrating.md"])
def test_the_examples_are_right(page: str) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", written(page), re.DOTALL)
    assert examples
    for example in examples:
        parse_settings(example, page)
