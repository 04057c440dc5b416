"""What docs/aws.md says follows from the code."""

from __future__ import annotations

from reconciler.sources.aws.source import CODES
from tests.docs.pages import headings


def test_every_code_of_aws_and_every_date_has_its_heading() -> None:
    assert {*CODES, "NotBefore", "NotAfter", "NotBeforeDeadline"} <= headings("aws.md")
