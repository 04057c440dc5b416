"""Lines that a ConfigMap keeps: bounded, whole from a moment on, and read as hostile."""

from __future__ import annotations

import base64
import gzip
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from msgspec import Struct

from reconciler.kubernetes.kept_lines import LARGEST, LARGEST_LINES, KeptLines, LineKind, packed, unpacked
from reconciler.model.values import decoded, encoded
from tests.support.builders import NOW, minutes


class Sight(Struct, frozen=True):
    """What a line says: somebody was seen."""

    at: datetime
    who: str


SIGHTS: LineKind[Sight] = LineKind(
    "node-maintenance-sights",
    "sights",
    "what is seen from then on is kept",
    lambda sight: sight.at,
    lambda sight: (sight.who, sight.at),
    encoded,
    lambda fields: decoded(Sight, fields),
)


def sight(number: int) -> Sight:
    """Return a sight so many seconds after NOW; its name compresses as badly as a UID."""
    return Sight(NOW + timedelta(seconds=number), str(UUID(int=pow(3, number + 500, 2**127))))


def zipped(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def test_lines_are_read_as_they_were_written() -> None:
    kept = KeptLines(NOW, tuple(map(sight, range(10))), "beside")

    assert unpacked(SIGHTS, packed(SIGHTS, kept)) == kept


def test_above_the_limit_the_oldest_are_left_out_and_the_rest_says_from_when_it_is_whole() -> None:
    every = tuple(map(sight, range(20_000)))
    data = packed(SIGHTS, KeptLines(NOW, every, "".join(map(str, range(20_000)))))
    read = unpacked(SIGHTS, data)

    assert LARGEST * 0.8 < len(data["lines"]) + len(data["beside"]) <= LARGEST
    assert read.lines == every[-len(read.lines) :]
    assert every[-len(read.lines) - 1].at < read.whole_from <= read.lines[0].at


def test_lines_of_two_processes_are_kept_once_and_not_beyond_their_time() -> None:
    before = KeptLines(NOW, (sight(0), sight(60)))
    kept = before.with_lines(SIGHTS, [sight(120), sight(60)], NOW + minutes(1))

    assert kept == KeptLines(NOW + minutes(1), (sight(60), sight(120)))


@pytest.mark.parametrize(
    ("data", "because"),
    [
        ({}, "it has no key lines"),
        ({"lines": "?"}, "its lines can't be read"),
        ({"lines": base64.b64encode(b"text").decode()}, "its lines can't be read"),
        ({"lines": zipped(b" " * (LARGEST_LINES + 1))}, f"its lines are more than {LARGEST_LINES} bytes"),
        ({"lines": zipped(b"[]"), "wholeFrom": "2026-11-21T12:00:00Z"}, "a line of it can't be read"),
        ({"lines": zipped(b""), "wholeFrom": "soon"}, "a line of it can't be read"),
    ],
    ids=["empty", "no base64", "no gzip", "a bomb", "no object", "no moment"],
)
def test_what_somebody_else_has_written_there_is_refused_in_words(data: dict[str, str], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        unpacked(SIGHTS, data)
