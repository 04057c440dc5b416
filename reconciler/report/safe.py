"""Text from outside, made safe for the form in which a person or a program reads it.

Anyone who can write an annotation of a node, a pod or a request decides what stands in a report. A terminal
obeys control characters, and Markdown makes links and images of text.
"""

from __future__ import annotations

import re

from reconciler.model.limits import escaped_json

_BLANK = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
# Markdown reads these anywhere in a line, and `_` at the edge of a word.
_MARKUP = re.compile(r"[\\`*\[\]<|~&]|(?<![^\W_])_|_(?![^\W_])")
# These begin a heading, a quotation, a list or a rule at the start of a line.
_START = re.compile(r"(?:[#>+=-]|\d{1,9}(?=[.)]))")
# Chats and trackers make links of addresses and mentions that have no markup at all.
_LINK = re.compile(r"(?<=:)(?=//)|(?<=[Ww]{3}\.)(?=\S)|(?<=@)(?=\S)")


def line(text: str) -> str:
    """Return the text as one line for a terminal: breaks become spaces, other control characters escapes.

    `\\x1b` is shown for ESC, `\\u202e` for a change of the writing direction, `\\udc00` for half of a
    surrogate pair.
    """
    text = _BLANK.sub(" ", text)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def lines(text: str) -> str:
    """Return the text with its line feeds, and each line as `line` returns it."""
    return "\n".join(map(line, text.split("\n")))


def markdown(text: str) -> str:
    """Return the text so that Markdown shows it as it is: no markup, no tags, no links, no images.

    A space breaks what would become a link without markup: `https: //`, `www. `, `@ `.
    """
    text = _LINK.sub(" ", line(text).strip())
    start = _START.match(text)
    text = _MARKUP.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", text)
    if start is None:
        return text
    # Behind a number the mark of a list is escaped, else the character itself.
    at = start.end() if start[0].isdigit() else 0
    return f"{text[:at]}\\{text[at:]}"


# A spreadsheet computes what begins so, also in the wide forms of these characters.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def csv_cell(text: str) -> str:
    """Return the text as a cell of CSV: one line, and never a formula for a spreadsheet.

    An apostrophe is put before what would be one. Quoting is left to the writer of CSV.
    """
    text = line(text).strip()
    return f"'{text}" if text.startswith(_FORMULA) else text


def json_text(text: str) -> str:
    """Return JSON in which each control character of a text is an escape; indentation stays."""
    return "\n".join(map(escaped_json, text.split("\n")))


def _escaped(character: str) -> str:
    if character.isspace():
        return " "
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
