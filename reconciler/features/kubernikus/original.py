"""The file `kubernikus.yaml` of maintenance-controller, as settings of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.settings.originals import OF_DRAINS, Key, Original, Translation, translate

_SECRET = "cloudProviderSecret"

_KEYS = (
    Key(("intervals", "requeue"), words="has no effect: a pass follows each change of a node"),
    *OF_DRAINS,
)
_PARTS = (
    Key((_SECRET, "name"), ("kubernikus", _SECRET, "name")),
    Key((_SECRET, "namespace"), ("kubernikus", _SECRET, "namespace")),
)
_NO_SECRET = "has no effect without both name and namespace: kubernikus.credentialsFile has the credentials"


def _is_one(value: Mapping[str, Any]) -> bool:
    """Whether it has the keys of this file, and none of the two others."""
    intervals = value.get("intervals")
    drains = isinstance(intervals, dict) and not intervals.keys().isdisjoint({"podDeletion", "podEviction"})
    others = value.keys() & {"vCenters", "alarms", "profiles", "instances"}
    return not others and (drains or _SECRET in value)


def _translate(value: Mapping[str, Any]) -> Translation:
    """Return the settings: there is no budget, and every pod is evicted, as there."""
    settings: dict[str, Any] = {
        "kubernikus": {"enabled": True},
        "events": {"Redeploy": {"emptyDir": "Evict", "unmanagedPods": "Evict"}},
        "budget": {"maxUnavailable": "100%"},
    }
    secret = value.get(_SECRET)
    whole = isinstance(secret, dict) and all(secret.get(key) for key in ("name", "namespace"))
    parts = _PARTS if whole else tuple(Key(part.path, words=_NO_SECRET) for part in _PARTS)
    return translate(value, (*_KEYS, *parts), settings)


KUBERNIKUS_YAML = Original("kubernikus.yaml", _is_one, _translate)
