"""A section of a file that maintenance-controller could read: it ignores keys that it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from reconciler.settings.mistakes import Path
from reconciler.settings.sections.section import Section


class LooseSection(Section):
    """A mapping whose unknown keys are kept apart. `reconciler check-config` warns of them."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _without_empty_keys(cls, data: Any) -> Any:
        """Drop keys without a value, such as `value:`, as maintenance-controller does."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


def ignored_keys(section: BaseModel, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each key that a section, or one below it, does not know, from this path on."""
    for key in sorted(section.model_extra or ()):
        yield (*path, key)
    config = getattr(section, "settings", None)
    if isinstance(config, BaseModel):
        yield from ignored_keys(config, (*path, "config"))
    for name, field in type(section).model_fields.items():
        here = (*path, str(field.alias))
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from ignored_keys(value, here)
        elif isinstance(value, tuple):
            for place, one in enumerate(value):
                if isinstance(one, BaseModel):
                    yield from ignored_keys(one, (*here, place))
