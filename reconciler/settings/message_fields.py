"""What a message of a workflow can name: the fields that maintenance-controller gives its templates."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.settings.go_templates import Fields


class About(Struct, frozen=True):
    """What a message is about: a profile of a node in its state, since `changed` (UTC).

    `last` is the profile of the node that changed last. `in_maintenance` is whether any profile of the node
    is in maintenance.
    """

    profile: str
    state: str
    changed: datetime
    last: str = ""
    in_maintenance: bool = False
    log_details: bool = False


def message_fields(node: Node, about: About) -> Fields:
    """Return the fields about this node.

    `.Profile` is a text in maintenance-controller, whose documentation has `.Profile.Current` and
    `.Profile.Last`. All three can be used here.
    """
    metadata = {
        "Name": node.name,
        "UID": node.uid,
        "Labels": node.labels,
        "Annotations": node.annotations,
    }
    spec = Fields({"ProviderID": node.provider_id, "Unschedulable": node.unschedulable})
    fields = {**metadata, "ObjectMeta": Fields(metadata, node.name), "Spec": spec}
    return Fields(
        {
            "State": about.state,
            "Profile": Fields({"Current": about.profile, "Last": about.last}, about.profile),
            "Node": Fields(fields, node.name),
            "InMaintenance": about.in_maintenance,
            "LastTransition": to_text(about.changed),
            "LogDetails": about.log_details,
        }
    )


KNOWN = message_fields(Node("node", "uid", "1"), About("profile", "operational", limits.EARLIEST))
"""All fields, with any values: what a template can name."""
