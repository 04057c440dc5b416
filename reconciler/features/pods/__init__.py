"""Who moved which pod, when and why: a line for each eviction."""

EVICTED = "evicted"
"""The `event` of a line about a pod that was evicted, in a log or a file."""
