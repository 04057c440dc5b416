"""The annotations by which a pass and the node agents talk to each other.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from reconciler.model.keys import NodeKey, Writer

PUBLISHED = NodeKey("imds", Writer.AGENT)
"""The annotation in which the node agent publishes the scheduled events of IMDS."""

ACKNOWLEDGED = NodeKey("acknowledge", Writer.PASS, with_case=True)
"""The annotation with the events that the node agent acknowledges."""

KEYS = (PUBLISHED, ACKNOWLEDGED)
