"""Kubernetes Events about nodes and about the pods that drains move."""
