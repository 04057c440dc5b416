"""Parses label selectors of the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.calendar.values import literal, near
from reconciler.model.selector import KEY, VALUE, LabelSelector, Operator, Requirement
from reconciler.settings.mistakes import Mistake, Mistakes

_VALUE = re.compile(VALUE)
_KEY = re.compile(KEY)

# The operators of metav1.LabelSelector.
_OPERATORS = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)


def parse_selector(value: object) -> LabelSelector:
    """Parse `{label: value}`, or Kubernetes' `{matchLabels, matchExpressions}`.

    Raises Mistakes, or ValueError if it is not a mapping.
    """
    if isinstance(value, LabelSelector):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{literal(value)} is not a mapping of labels to values")
    mistakes: list[Mistake] = []
    full = bool(value) and set(value) <= {"matchLabels", "matchExpressions"}
    if full and any(isinstance(part, str) for part in value.values()):
        full = False  # a label may be called matchLabels
    if not full:
        requirements = _equalities(value, (), mistakes)
    else:
        labels, expressions = value.get("matchLabels"), value.get("matchExpressions")
        requirements = []
        if isinstance(labels, Mapping):
            requirements += _equalities(labels, ("matchLabels",), mistakes)
        elif labels is not None:
            mistakes.append(Mistake(("matchLabels",), f"{literal(labels)} is not a mapping"))
        if isinstance(expressions, list):
            for index, expression in enumerate(expressions):
                requirements += _expression(expression, ("matchExpressions", index), mistakes)
        elif expressions is not None:
            mistakes.append(Mistake(("matchExpressions",), f"{literal(expressions)} is not a list"))
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return LabelSelector(tuple(requirements))


def _wrong_key(key: str) -> str:
    return "" if _KEY.fullmatch(key) else f"{key!r} is not a valid label key"


def _wrong_value(value: object) -> str:
    if not isinstance(value, str):
        # `gpu: true` is a boolean, and label values are text.
        hint = "write it in quotes" if value is not None else "this one is empty"
        return f"a label value is text; {hint}" + ("" if value is None else f': "{literal(value)}"')
    return "" if _VALUE.fullmatch(value) else f"{literal(value)} is not a valid label value"


def _equalities(
    labels: Mapping[object, object], path: tuple[str, ...], mistakes: list[Mistake]
) -> list[Requirement]:
    requirements = []
    for key, value in labels.items():
        wrong = _wrong_key(str(key)) or _wrong_value(value)
        if wrong:
            mistakes.append(Mistake((*path, str(key)), wrong))
        else:
            requirements.append(Requirement(str(key), Operator.IN, (str(value),)))
    return requirements


def _expression(value: object, path: tuple[str | int, ...], mistakes: list[Mistake]) -> list[Requirement]:
    if not isinstance(value, Mapping):
        mistakes.append(Mistake(path, f"{literal(value)} is not a mapping of key, operator and values"))
        return []
    before = len(mistakes)
    for name in value:
        if name not in ("key", "operator", "values"):
            hint = near(str(name), ["key", "operator", "values"])
            mistakes.append(Mistake((*path, str(name)), f"unknown key{hint}"))
    key, operator, values = value.get("key"), value.get("operator"), value.get("values") or []
    if not isinstance(key, str) or _wrong_key(key):
        mistakes.append(Mistake((*path, "key"), f"{literal(key)} is not a valid label key"))
    if operator not in _OPERATORS:
        hint = near(str(operator), list(_OPERATORS))
        message = f"{literal(operator)} is not one of {', '.join(_OPERATORS)}{hint}"
        mistakes.append(Mistake((*path, "operator"), message))
    elif not isinstance(values, list) or any(_wrong_value(each) for each in values):
        mistakes.append(Mistake((*path, "values"), "is not a list of texts"))
    elif bool(values) is not (operator in (Operator.IN, Operator.NOT_IN)):
        message = "takes no values" if values else "needs values"
        mistakes.append(Mistake((*path, "values" if values else "operator"), f"{operator} {message}"))
    if len(mistakes) > before:
        return []
    return [Requirement(str(key), Operator(str(operator)), tuple(str(each) for each in values))]


def for_nodes(selector: LabelSelector) -> str:
    """Return the end of a sentence about the nodes that it selects; empty for all nodes."""
    return "" if selector.selects_all else f", on nodes with {selector}"
