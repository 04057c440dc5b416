"""Which pods a drain evicts, in which order, and why not. Pure."""

from reconciler.drain.filters import Action, PodDeleteStatus, Tier, judge, tier_of
from reconciler.drain.survey import Survey, survey

__all__ = ["Action", "PodDeleteStatus", "Survey", "Tier", "judge", "survey", "tier_of"]
