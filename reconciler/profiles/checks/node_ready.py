"""nodeReady: whether the node has been Ready for the settle time."""

from __future__ import annotations

from reconciler.model.moments import to_text
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("nodeReady", ordinarily="the node is Ready")
def node_ready(situation: Situation) -> CheckResult:
    """Pass when Ready has been True for `uncordon.settle`."""
    if not situation.node.ready:
        return failed("the node is NotReady")
    since = situation.node.ready_changed
    until = since + situation.settings.uncordon.settle if since else None
    if since and until and situation.now < until:
        reason = f"the node has been Ready since {to_text(since)}; it settles until {to_text(until)}"
        return failed(reason, until)
    return passed()
