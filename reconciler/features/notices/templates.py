"""Templates of notices, in the sandbox of Jinja, with limits for time and output.

Whoever writes the settings writes them. The limits are against mistakes, such as a loop that does not end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST = 4096
"""Characters of a template."""

LARGEST = 20_000
"""Characters of what a template makes."""

SECONDS = 1.0
"""How long a template may take."""

VARIABLES = ("cluster", "title", "text", "lines", "messages")
"""What a template can use."""

_LONGEST_REPEATED = 10_000


class TemplateFailed(Exception):
    """A template made no text; the message says why."""


def mistake_in(text: str) -> str:
    """Return what is wrong with a template, empty if nothing is."""
    from jinja2 import TemplateSyntaxError, meta

    try:
        environment = _environment()
        tree = environment.parse(text)
        environment.from_string(text)
    except TemplateSyntaxError as error:
        return f"line {error.lineno} of the template: {error.message}"
    except (RecursionError, SyntaxError, MemoryError):
        return "the template is nested too deep"
    unknown = sorted(meta.find_undeclared_variables(tree) - set(VARIABLES))
    if unknown:
        return f"the template uses {', '.join(unknown)}; it can use {', '.join(VARIABLES)}"
    return ""


def rendered(text: str, values: Mapping[str, Any], is_over: Callable[[], bool]) -> str:
    """Return what the template makes of the values, at most LARGEST characters; raises TemplateFailed.

    `is_over` says that its time is over. It is called for every line that the template runs.
    """
    pieces: list[str] = []
    size = 0

    def watch(frame: FrameType, event: str, argument: object) -> Any:
        del frame, event, argument
        if is_over():
            raise TemplateFailed(f"it took longer than {SECONDS:g} seconds")
        return watch

    before = sys.gettrace()
    try:
        template = _environment().from_string(text)
        sys.settrace(watch)
        for piece in template.generate(**values):
            size += len(piece)
            if size > LARGEST:
                raise TemplateFailed(f"it makes more than {LARGEST} characters")
            pieces.append(piece)
    except TemplateFailed:
        raise
    except Exception as error:
        raise TemplateFailed(f"{type(error).__name__}: {error}"[:200]) from error
    finally:
        sys.settrace(before)
    return "".join(pieces)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # Most settings have no template.
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            sizes = [len(value) if isinstance(value, str | list | tuple) else 1 for value in (left, right)]
            counts = [abs(value) for value in (left, right) if isinstance(value, int)]
            if operator == "**" or max(sizes) * max(counts, default=1) > _LONGEST_REPEATED:
                raise TemplateFailed(f"it uses {operator} with values that are too large")
            return super().call_binop(context, operator, left, right)

    # Not optimized: an expression of constants would be computed while the settings are loaded.
    environment = Sandbox(undefined=StrictUndefined, optimized=False, autoescape=False)
    environment.globals = {"range": environment.globals["range"]}
    return environment
