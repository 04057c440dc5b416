"""Text in so many columns of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len

from reconciler.report import safe


def shortened(text: str, width: int, mark: str, *, head: int | None = None) -> str:
    """Return the text in at most `width` columns, with `mark` for what is left out in the middle.

    `head` is how many columns of its beginning stay, by default half of them.
    """
    text = safe.line(text)
    if cell_len(text) <= width:
        return text
    room = max(width - cell_len(mark), 0)
    begin = _prefix(text, room // 2 if head is None else min(head, room))
    end = _prefix(text[::-1], room - cell_len(begin))[::-1]
    return f"{begin}{mark}{end}"


def padded(text: str, width: int) -> str:
    """Return the text with spaces behind it, up to so many columns."""
    return text + " " * max(width - cell_len(text), 0)


def short_names(names: Iterable[str], width: int, mark: str) -> dict[str, str]:
    """Return each name in at most `width` columns, so that as few of them as possible look the same."""
    known = list(dict.fromkeys(names))
    room = max(width - cell_len(mark), 0)
    heads = sorted(range(room + 1), key=lambda head: abs(head - room // 2))
    best: dict[str, str] = {}
    for head in heads:
        found = {name: shortened(name, width, mark, head=head) for name in known}
        if len(set(found.values())) > len(set(best.values())):
            best = found
        if len(set(best.values())) == len(known):
            break
    return best


def _prefix(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    taken = ""
    for character in text:
        if cell_len(taken) + cell_len(character) > width:
            break
        taken += character
    return taken
