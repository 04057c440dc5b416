"""Sends the requests that the core wants, and converts answers and errors into events for the core."""

from __future__ import annotations

from datetime import datetime

from reconciler.drain.drainer.messages import (
    Answer,
    AttachmentsSeen,
    CheckNode,
    Delete,
    Evict,
    ListAttachments,
    ListPods,
    NodeSeen,
    PodsSeen,
    Request,
    Restart,
    Watch,
    WatchBudgets,
    WatchEnded,
    WatchPods,
    WriteDone,
)
from reconciler.model.errors import ReconcilerError
from reconciler.model.ports import Evictor


def ask(evictor: Evictor, command: Request, now: datetime) -> Answer:
    """Send the request and return the event for the core. Raises the errors of the evictor."""
    node, number = command.node, command.drain
    match command:
        case CheckNode():
            return NodeSeen(node, number, evictor.node(node))
        case ListPods():
            return PodsSeen(node, number, evictor.pods(node))
        case ListAttachments():
            return AttachmentsSeen(node, number, evictor.attachments(node))
        case Restart(pod=pod):
            return WriteDone(command, restarted=evictor.restart(pod, now))
        case Evict(pod=pod, grace=grace):
            evictor.evict(pod, grace=grace)
            return WriteDone(command)
        case Delete(pod=pod, grace=grace):
            evictor.delete(pod, grace=grace)
            return WriteDone(command)


def failed(command: Watch | Request, error: ReconcilerError) -> Answer | WatchEnded:
    """Return the event for a request that failed, or for a watch that could not be opened."""
    match command:
        case WatchPods(node, watch):
            return WatchEnded(node, watch, error)
        case WatchBudgets(watch, _):
            return WatchEnded(None, watch, error)
        case CheckNode(node, drain):
            return NodeSeen(node, drain, error=error)
        case ListPods(node, drain):
            return PodsSeen(node, drain, error=error)
        case ListAttachments(node, drain):
            return AttachmentsSeen(node, drain, error=error)
        case _:
            return WriteDone(command, error=error)
