"""The commands of the core that are one request each: made of the evictor, and answered."""

from __future__ import annotations

from datetime import datetime

from reconciler.drainer.messages import (
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
    WriteDone,
)
from reconciler.errors import ReconcilerError
from reconciler.model.ports import Evictor


def ask(evictor: Evictor, command: Request, now: datetime) -> Answer:
    """Make the request and return what the core is to be told; raises what the evictor raises."""
    node, number = command.node, command.drain
    match command:
        case CheckNode():
            return NodeSeen(node, number, evictor.node(node))
        case ListPods():
            return PodsSeen(node, number, evictor.pods(node))
        case ListAttachments():
            return AttachmentsSeen(node, number, evictor.attachments(node))
        case Restart(pod=pod):
            return WriteDone(command, said=evictor.restart(pod, now))
        case Evict(pod=pod, grace=grace):
            evictor.evict(pod, grace=grace)
            return WriteDone(command)
        case Delete(pod=pod, grace=grace):
            evictor.delete(pod, grace=grace)
            return WriteDone(command)


def failed(command: Request, error: ReconcilerError) -> Answer:
    """Return what the core is told of a request that raised."""
    node, number = command.node, command.drain
    match command:
        case CheckNode():
            return NodeSeen(node, number, error=error)
        case ListPods():
            return PodsSeen(node, number, error=error)
        case ListAttachments():
            return AttachmentsSeen(node, number, error=error)
        case _:
            return WriteDone(command, error=error)
