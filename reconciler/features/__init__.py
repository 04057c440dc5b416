"""Every feature that takes part in passes: to add one, add its folder, and a line here.

The lines are in the order of the fold. They are text, so that a command that needs one feature loads no
other.
"""

FEATURES = (
    "machines.registry:MACHINES",
    "workflows.decide:WORKFLOWS",
    "publishing.registry:PUBLISHING",
)
