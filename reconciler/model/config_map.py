"""The name of a ConfigMap with settings, as a person writes it on the command line."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.names import is_object_name

PREFIX = "configmap/"

INSTALLED = "maintenance-policy"
"""The ConfigMap with the settings that k8s/base and the chart install."""

INSTALLED_LABEL = "app.kubernetes.io/part-of=node-maintenance-reconciler"
"""The label of everything that they install, also under another name."""

KEY = "maintenance.yaml"
"""The key with the settings in that ConfigMap."""


class ConfigMapName(Struct, frozen=True):
    """A ConfigMap. `str` of it is the form in which it was written."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `configmap/NAMESPACE/NAME`."""
        return f"{PREFIX}{self.namespace}/{self.name}"


def parse_config_map(text: str) -> ConfigMapName | None:
    """Return the ConfigMap of `configmap/NAMESPACE/NAME`, None for a text without that prefix.

    Raises ValueError if the rest is not two names.
    """
    if not text.startswith(PREFIX):
        return None
    parts = text.removeprefix(PREFIX).split("/")
    if len(parts) != 2 or not all(map(is_object_name, parts)):
        raise ValueError(f"{text!r} is not configmap/NAMESPACE/NAME; for a file, write ./{text}")
    return ConfigMapName(*parts)
