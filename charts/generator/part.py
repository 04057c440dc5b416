"""What all groups of the chart's values are."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Objects = list[dict[str, Any]]
MONITORING_NAMESPACES = ["kube-system", "monitoring"]
"""Where those run who read metrics, if no value says it."""


class Part(BaseModel):
    """A group of values. Unknown ones are refused."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, extra="forbid", frozen=True)
