"""Reads the page as a browser does: its elements, its texts, and what it would load."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_INLINE = frozenset({"a", "b", "code", "i"})
_VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})


@dataclass
class Element:
    """One element with its attributes and what is in it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str = "") -> list[Element]:
        """Every element inside with this tag, in order; every one without a tag."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child, *child.all()]
        return [one for one in found if tag in ("", one.tag)]

    def by_id(self, name: str) -> Element:
        """The element with this ID, which has to be there once."""
        (found,) = [one for one in self.all() if one.attributes.get("id") == name]
        return found

    @property
    def text(self) -> str:
        """All text inside, on one line."""
        return " ".join(self._raw().split())

    def _raw(self) -> str:
        parts = (one if isinstance(one, str) else one._raw() for one in self.children)
        return "".join(parts) if self.tag in _INLINE else f" {''.join(parts)} "


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Element:
    """The whole document; every element has its end."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert len(parser.open) == 1, f"<{parser.open[-1].tag}> has no end"
    return parser.open[0]


def section(page: Element, heading: str) -> Element:
    """The section with this heading's ID."""
    (found,) = [one for one in page.all("section") if one.attributes.get("aria-labelledby") == heading]
    return found
