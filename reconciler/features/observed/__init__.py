"""What would have been done while the mode was Observe, and what is left to do until Enforce."""

NAME = "node-maintenance-observed"
"""The ConfigMap that keeps it."""

OBSERVED = "observed"
"""The `event` of a line about a case that is over, in a log or a file, and the option that asks for it."""
