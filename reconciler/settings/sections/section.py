"""What every section of the settings file has in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from reconciler.model.selector import LabelSelector


def fields_of(section: BaseModel) -> dict[str, Any]:
    """Return the value of each key that has one, by its name in the file."""
    found = {str(one.alias): getattr(section, name) for name, one in type(section).model_fields.items()}
    return {key: value for key, value in found.items() if value is not None}


class Section(BaseModel):
    """A mapping in the file. Unknown keys are mistakes. An empty section has all its defaults."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty_sections(cls, data: Any) -> Any:
        """Drop `budget:` with nothing below it, as Kubernetes does. All its keys may be commented out."""
        if data is None:
            return {}
        if not isinstance(data, dict) or None not in data.values():
            return data
        sections = {
            field.alias
            for field in cls.model_fields.values()
            if isinstance(
                field.get_default(call_default_factory=True), Section | tuple | dict | LabelSelector
            )
        }
        return {key: value for key, value in data.items() if value is not None or key not in sections}
