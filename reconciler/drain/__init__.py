"""Which pods a drain evicts, in which order, and why not. Pure."""

from reconciler.drain.filters import Action, PodDeleteStatus, Survey, Tier, judge, survey, tier_of

__all__ = ["Action", "PodDeleteStatus", "Survey", "Tier", "judge", "survey", "tier_of"]
