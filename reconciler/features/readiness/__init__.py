"""Readiness: what would keep each node from a drain now, by workload. Pure, except for its ports.

`read` reads the cluster, `judge_nodes` judges every node as if it had to go now, and `summed_up` groups what
was found by workload.
"""

from reconciler.plugins import PLAN, Command

COMMANDS = {
    "readiness": Command(PLAN, "Print what keeps nodes from a drain, by workload.", "readiness --strict")
}

SYNONYMS = {"ready": "readiness", "pdb": "readiness", "preflight": "readiness"}
"""What people try instead, with the command that does it."""
