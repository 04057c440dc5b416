"""Text that nothing obeys: JSON without characters that control a terminal, text without Slack's markup.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json


def escaped_json(text: str) -> str:
    """Return one line of JSON with a JSON escape for each character that is not printable.

    JSON permits such characters inside a text. A terminal obeys some of them, and others hide what follows.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def without_slack_markup(text: str) -> str:
    """Return the text without Slack's markup: no links, no mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
