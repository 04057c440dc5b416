"""The annotation by which a person begins the drain of announced maintenance.

    <prefix>/start  {"by": "alice@host", "at": "…", "reason": "…", "uid": "…", "now": true,
                     "case": "…", "events": [{"kind": "Reboot", …}]}

It is for the events that the node reports when it is written, as an approval is, and for the node with this
UID. One that can't be read begins nothing.
"""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.instructions import ForEvents, Waiver, for_events, for_events_text
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent

NAME = "start"


class Start(Struct, frozen=True):
    """A person begins the drain for these events. `now`: it waits for no window, freeze, place or spacing."""

    said: ForEvents
    now: bool = False

    @property
    def waiver(self) -> Waiver:
        """What the drain for each of its events does not wait for."""
        return Waiver(NAME, "started", self.said.word, self.now)

    @property
    def words(self) -> str:
        """Which drain was started by whom, when and why."""
        names = ", ".join(dict.fromkeys(event.condition or event.kind.value for event in self.said.events))
        return f"its drain for {names} was {self.waiver.words}"


def may_begin(event: JudgedEvent) -> bool:
    """Whether a drain may begin for the event, now or later."""
    if event.asks:
        return event.starts
    return event.times is not None or event.waits_for_notice


def key_of(prefix: str) -> str:
    """Return the annotation of the installation with this prefix of keys."""
    return f"{prefix}/{NAME}"


def text_of(start: Start, node: Node) -> str:
    """Return the text of the annotation; ValueError if it would be longer than a reader takes."""
    return for_events_text(start.said, NAME, {"uid": node.uid, "now": start.now})


def start_of(node: Node, prefix: str) -> Start | None:
    """Return the start of a node, None without one, and for that of another node: clouds copy annotations."""
    text = node.annotations.get(key_of(prefix))
    if text is None:
        return None
    said, document = for_events(text, NAME, f"reconciler start {node.name}")
    return Start(said, document.get("now") is True) if document.get("uid") == node.uid else None
