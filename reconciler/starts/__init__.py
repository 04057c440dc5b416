"""When drains start: the times of one event, the places of the budget, and the schedule of all cases."""
