"""Scheduled events of IMDS, which the node agent publishes."""
