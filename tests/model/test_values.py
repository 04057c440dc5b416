"""A value comes back from its document; what is missing, other or too much is handled in one place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, field

from reconciler.model import limits
from reconciler.model.values import Flat, Name, UnixMoment, Written, decoded, encoded, register

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Colour(StrEnum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Point(Struct, frozen=True):
    """Something with a form of its own."""

    x: int
    y: int


register(Point, lambda point: f"{point.x},{point.y}", lambda text: Point(*map(int, text.split(","))))


class Inner(Struct, frozen=True):
    """A value in another."""

    at: datetime | None
    long_name: str = ""


class Corner(Struct, frozen=True):
    """A value whose fields stand among others."""

    left: int


class Outer(Struct, frozen=True):
    """A value with every type."""

    name: Name
    colour: Written[Colour] = Colour.RED
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    few: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    by_name: Mapping[str, Point] = field(default_factory=dict)
    attempts: int = 1
    big: Annotated[int, Meta(le=2_000_000)] = 0
    seen: UnixMoment | None = None
    lasts: timedelta | None = None
    told: bool = False
    other: str = field(default="", name="o")
    corner: Flat[Corner] = Corner(0)


FULL = Outer(
    "a",
    Colour.BLUE,
    Inner(NOW, "x"),
    (Inner(None),),
    ("b",),
    {"p": Point(1, 2)},
    3,
    2_000_000,
    NOW,
    timedelta(seconds=90),
    True,
    "o",
    Corner(7),
)


def test_every_type_is_written_in_its_form_and_comes_back() -> None:
    document = encoded(FULL)

    assert document == {
        "name": "a",
        "colour": "blue",
        "inner": {"at": "2026-11-21T12:00:00Z", "longName": "x"},
        "inners": [{}],
        "few": ["b"],
        "byName": {"p": "1,2"},
        "attempts": 3,
        "big": 2_000_000,
        "seen": 1795262400,
        "lasts": 90,
        "told": True,
        "o": "o",
        "left": 7,
    }
    assert decoded(Outer, document) == FULL


def test_a_default_is_left_out_unless_earlier_programs_need_it() -> None:
    assert encoded(Outer("a")) == {"name": "a", "colour": "red", "left": 0}
    assert decoded(Outer, {"name": "a", "left": 0, "later": 1}) == Outer("a")


@pytest.mark.parametrize(
    "change",
    [
        {"name": 1},
        {"colour": "green"},
        {"told": "yes"},
        {"few": "ab"},
        {"byName": ["p"]},
        {"attempts": 1_000_001},
        {"attempts": -1},
        {"attempts": True},
        {"big": 2_000_001},
        {"few": ["a", "b", "c"]},
        {"inners": [{}] * (limits.EVENTS + 1)},
        {"byName": dict.fromkeys(map(str, range(limits.EVENTS + 1)), "1,2")},
        {"byName": {"p": "1"}},
        {"inner": []},
        {"inner": "text"},
        {"inner": {"at": "yesterday"}},
        {"inner": {"at": "9026-11-21T12:00:00Z"}},
        {"seen": []},
        {"lasts": "long"},
    ],
)
def test_what_has_another_form_or_is_beyond_a_limit_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(Outer, {"name": "a", "left": 0, **change})


@pytest.mark.parametrize("document", [{}, [], None, "name", 1])
def test_what_is_missing_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(Outer, document)


def test_an_error_names_the_field_and_says_what_it_is() -> None:
    for document, because in (
        ({"name": "a", "inners": [{"longName": 1}]}, "inners: longName: 1 is not a text"),
        ({"name": "a", "colour": "green"}, "colour: 'green' is not one of red, blue"),
        ({"name": "a", "few": ["", "", ""]}, "few: 3 items are recorded, and 2 are read"),
        ({}, "name is missing"),
        ({"name": "a"}, "left is missing"),
    ):
        with pytest.raises(ValueError, match=f"^{because}$"):
            decoded(Outer, document)


def test_texts_are_cut_to_their_limits() -> None:
    found = decoded(Outer, {"name": "n" * 2000, "left": 0, "inner": {"longName": "\ud800" * 2000}})

    assert found.inner is not None
    assert (len(found.name), len(found.inner.long_name)) == (limits.NAME, limits.TEXT)
    assert "\ud800" not in found.inner.long_name
