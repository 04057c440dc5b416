"""The JSON Schema of the settings file, for editors and other programs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct
from pydantic.json_schema import GenerateJsonSchema

from reconciler.calendar.values import Limit, format_days, format_duration
from reconciler.model.secret import Secret
from reconciler.model.selector import LabelSelector
from reconciler.settings.schema import whole_settings


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        """Return a default in the form that a settings file has."""
        if isinstance(dft, timedelta):
            return format_duration(dft)
        if isinstance(dft, ZoneInfo):
            return dft.key
        if isinstance(dft, Limit):
            return str(dft) if dft.percent else dft.amount
        if isinstance(dft, LabelSelector):
            return {}  # every default selector selects everything
        if isinstance(dft, Secret):
            return dft.text
        if isinstance(dft, frozenset):
            return format_days(dft)
        if isinstance(dft, tuple):
            return [self.encode_default(item) for item in dft]
        if hasattr(dft, "model_fields_set"):
            return {}  # the keys of the section have the defaults
        if isinstance(dft, Struct):
            return str(dft)
        return super().encode_default(dft)


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with the keys, types, defaults and descriptions of the settings."""
    schema = whole_settings().model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}
