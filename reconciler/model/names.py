"""Names as Kubernetes has them. A name from an object's references is checked before it is used in a path."""

from __future__ import annotations

import re

_LONGEST = 253
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def is_object_name(text: str) -> bool:
    """Whether a text is a name that the API server accepts for a workload, a pod or a volume claim.

    This is a DNS subdomain (k8s.io/apimachinery, IsDNS1123Subdomain). The API server does not check the names
    in ownerReferences and in the volumes of a pod, so these can be any text.
    """
    return len(text) <= _LONGEST and _SUBDOMAIN.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return a name from outside for a message: in quotes, with escapes, and at most as long as a name."""
    return ascii(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
