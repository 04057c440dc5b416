"""What a feature shows on a page above all else: an answer, a table, and steps that a person takes."""

from __future__ import annotations

from msgspec import Struct


class Step(Struct, frozen=True):
    """A step that a person takes. `done` is None if that is not known, `because` says why in a sentence.

    `todo` is what to type or to write into the settings for it, line by line, `comment` words about that.
    """

    title: str
    done: bool | None
    because: str
    todo: tuple[str, ...] = ()
    comment: str = ""


class Panel(Struct, frozen=True):
    """A part of a page. Moments in texts are RFC 3339 in UTC, and names may be from anybody.

    `more` is a sentence below the answer. `steps` stand below it, with the heading `way`. `heads` and `rows`
    are a table, which is called `table`, and `rest` says what is left out of it. What is empty is not there.
    """

    title: str
    answer: str
    more: str = ""
    way: str = ""
    steps: tuple[Step, ...] = ()
    table: str = ""
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    rest: str = ""
