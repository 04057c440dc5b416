"""Scheduled events of Azure's instance metadata service."""

from reconciler.plugins import SET_UP, Command

COMMANDS = {"agent": Command(SET_UP, "Publish the scheduled events of this node's VM.", "agent")}
