"""The commands: one file each, with its `command`. This file imports none of them."""

from __future__ import annotations

from types import MappingProxyType

COMMANDS = MappingProxyType(
    {
        "agent": "Publish the scheduled events of this node's VM, for a DaemonSet.",
        "approve": "Approve the drains for the events that are reported now, or withdraw the approval.",
        "check-config": "Print all mistakes in a settings file, or what happens to each kind of event.",
        "completion": "Print what completes commands in bash, zsh or fish, or in kubectl.",
        "defer": "Put the drain of nodes off until a moment, or until a deadline that comes first.",
        "demo": "Play a day of a simulated AKS cluster in seconds.",
        "drain": "Cordon and drain nodes by hand, with the flags of kubectl drain.",
        "explain": "Print what happens to one node or pod, why, and who can change it.",
        "history": "Sum up the cases that have ended, from files of --history or from logs of serve.",
        "hold": "Hold nodes: no drain of them begins, not even at a deadline.",
        "plan": "Print what will start when, as a table and a chart. It only reads the cluster.",
        "readiness": "Print what keeps nodes from a drain, by workload. It changes nothing in the cluster.",
        "release": "Uncordon nodes, and remove the reconciler's labels and annotations.",
        "report": "Print what a pass would do and why, with a preview of drains. It only reads the cluster.",
        "request": "Request maintenance of nodes, or cancel the request.",
        "resume": "End the hold and the deferral of nodes, whoever gave them.",
        "schema": "Print the JSON Schema of the settings file, for editors.",
        "serve": "Run passes until stopped, for a Deployment: on a schedule, and when a node changes.",
        "simulate": "Play months of maintenance against a policy, and compare it with another one.",
        "sweep": "Run one pass over all nodes, for a CronJob.",
        "windows": "Print whether a drain may start at a moment, why, the next openings, and a chart.",
    }
)
"""Every command with its line in `reconciler --help`.

The function `command` in check_config.py is `check-config`, and so on. To add a command, add a line here and
a file beside this one.
"""
