"""The interpreter of profiles, with the case, the budget and the schedule."""
