"""Explain: one node or one pod: what is announced, what follows, what blocks it, and who can change that."""

from reconciler.report.explain.nodes import explain_node, obstacles
from reconciler.report.explain.pods import explain_pod, find_pod

__all__ = ["explain_node", "explain_pod", "find_pod", "obstacles"]
