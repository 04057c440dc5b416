"""Readiness: what would keep each node from a drain now, by workload. Pure, except for its ports.

`read` reads the cluster, `judge_nodes` judges every node as if it had to go now, and `summed_up` groups what
was found by workload.
"""

from reconciler.features.readiness.judging import Judged, judge_nodes
from reconciler.features.readiness.reading import Seen, read
from reconciler.features.readiness.summing import in_turn, summed_up

__all__ = ["Judged", "Seen", "in_turn", "judge_nodes", "read", "summed_up"]
