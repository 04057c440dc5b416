"""What a request may hold: beyond the limits it is one unreadable event."""

from __future__ import annotations

import pytest

from reconciler.model import limits
from reconciler.model.event import Kind
from reconciler.sources.request import source as request
from tests.support import builders
from tests.support.builders import PREFIX, REQUEST

MANY_DIGITS = "9" * 5000
HALF = "\\ud800"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"kind":"Reboot","duration":{MANY_DIGITS}}}',
        f'{{"kind":{MANY_DIGITS}}}',
        f'{{"kind":"Reboot","notBefore":{MANY_DIGITS}}}',
        '{"kind":"Reboot","notBefore":"9999-12-31T23:59:59Z"}',
        '{"kind":"Reboot","duration":"9999999d"}',
        f'{{"{HALF}":1}}',
        "[" * 20_000,
        '{"kind":"Reboot","reason":"' + "x" * limits.ANNOTATION + '"}',
    ],
)
def test_a_request_beyond_the_limits_is_one_unreadable_event(text: str) -> None:
    (found,) = request.read(builders.node(annotations={REQUEST: text}), PREFIX).signals
    assert found.kind is Kind.UNKNOWN
    assert len(found.description) <= limits.TEXT


def test_half_a_surrogate_pair_in_a_request_is_replaced() -> None:
    text = f'{{"kind":"Reboot","id":"{HALF}","reason":"a{HALF}"}}'
    (found,) = request.read(builders.node(annotations={REQUEST: text}), PREFIX).signals
    assert (found.kind, found.id, found.description) == (Kind.REBOOT, "\ufffd", "a\ufffd")
