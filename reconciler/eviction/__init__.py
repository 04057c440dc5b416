"""Which pods a drain evicts, in which order, and why not. Pure."""

from reconciler.eviction.filters import Action, PodDeleteStatus, judge
from reconciler.eviction.order import Tier, tier_of
from reconciler.eviction.survey import Survey, survey

__all__ = ["Action", "PodDeleteStatus", "Survey", "Tier", "judge", "survey", "tier_of"]
