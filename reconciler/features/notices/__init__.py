"""Notices: which messages a plan has, who gets them, and when.

Everything here is a function of the plan, the settings, the memory of what was sent, and `now`.
`queue.py` sends what is due.
"""

MEMORY = "node-maintenance-notices"
"""The ConfigMap that remembers which notices were sent."""
