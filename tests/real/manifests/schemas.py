"""The schemas of Kubernetes, to which every manifest has to keep."""

from __future__ import annotations

from functools import cache
from typing import Any

import kubernetes_validate
from kubernetes_validate import utils

# The package reads a file of 1.5 MB for each object.
utils.schema_contents = cache(utils.schema_contents)


def keeps_its_schema(found: dict[str, Any]) -> None:
    """Raise ValidationError if the object, or a field of it, is unknown to its schema or not as it says."""
    kubernetes_validate.validate(found, "1.33", strict=True)
