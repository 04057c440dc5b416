"""The file of a recorded case: YAML without a word that may identify somebody."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from msgspec import Struct

from jobs.runtime.output import as_yaml
from reconciler import __version__
from reconciler.calendar.occurrences import Run
from reconciler.calendar.windows import Window
from reconciler.features.recordings.case import Case
from reconciler.features.recordings.standins import IDS, Hidden, StandIns
from reconciler.model import limits
from reconciler.model.moments import to_text
from reconciler.model.values import decoded, encoded
from reconciler.report.document import as_json
from reconciler.report.values import Document
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.settings.yaml import read_yaml

API_VERSION = "node-maintenance.dev/v1alpha1"
KIND = "RecordedCase"
VERSION = 1

LARGEST = 1_000_000
"""Characters of a file; what reads YAML takes no more."""

_SECTIONS = (
    "mode", "nodeSelector", "timeZone", "sources", "events", "conditions", "windows", "notAllowed", "budget",
    "drain", "uncordon", "hooks", "replace", "adopt", "coexist", "keys", "overrides", "publish", "hints",
)  # fmt: skip
"""The sections that a file has. Nothing of others is sent: they may have secrets, and decide little."""

_SOURCES = ("nodeConditions", "imds", "requests", "arm", "aws")

_WEBHOOK = {"url": "https://host.invalid/"}
_JOB = {"spec": {"template": {"spec": {"containers": [{"name": "hook"}]}}}}


_CALENDARS = "calendars"
_AHEAD, _RUNS = timedelta(days=60), 50
"""How far ahead, and how many times, a file has of a calendar."""


def policy_of(text: str, settings_in_use: Settings, now: datetime) -> tuple[Document, list[str]]:
    """Return what a file has of the settings in this text, and what it leaves out. `now` is aware.

    What `settings_in_use` have of calendars becomes windows and freezes with dates.
    """
    value = read_yaml(text).value
    settings: dict[str, Any] = value if isinstance(value, dict) else {}
    kept = {key: settings[key] for key in _SECTIONS if settings.get(key) is not None}
    left = [key for key in settings if key not in kept and key not in ("apiVersion", "kind", _CALENDARS)]
    for rule in (rule for part in settings_in_use.of_features for rule in part.rules(settings_in_use)):
        ahead = takewhile(lambda run: run.start < now + _AHEAD, rule.times.runs(now))
        # A calendar without a time ahead opens no window, but it is there.
        runs = list(islice(ahead, _RUNS)) or ([_NEVER] if isinstance(rule, Window) else [])
        selector = [encoded(each) for each in rule.selector.requirements]
        more = {} if isinstance(rule, Window) else {"reason": rule.reason, "absolute": rule.absolute}
        entries = [
            {
                "name": f"{rule.name} {number}",
                "start": to_text(max(run.start, limits.EARLIEST)),
                "end": to_text(min(run.end, limits.LATEST)),
                **{key: value for key, value in more.items() if value},
                **({"nodeSelector": {"matchExpressions": selector}} if selector else {}),
            }
            for number, run in enumerate(runs, 1)
        ]
        key = "windows" if isinstance(rule, Window) else "notAllowed"
        kept[key] = [*kept.get(key, ()), *entries]
    if isinstance(sources := kept.get("sources"), dict):
        kept["sources"] = {key: sources[key] for key in _SOURCES if key in sources}
        left += [f"sources.{key}" for key in sources if key not in _SOURCES]
    if isinstance(hooks := kept.get("hooks"), dict):
        # Which hooks there are decides. What they send and run is nobody's business.
        kept["hooks"] = {
            key: [_without_content(hook) for hook in each] if isinstance(each, list) else each
            for key, each in hooks.items()
        }
    return kept, left


_NEVER = Run(limits.LATEST - timedelta(days=1), limits.LATEST)


def _without_content(hook: Any) -> Document:
    named = {key: hook[key] for key in ("name", "nodeSelector") if key in hook}
    return {**named, "job": _JOB} if hook.get("job") is not None else {**named, "webhook": _WEBHOOK}


def _zones(value: Any) -> set[str]:
    """Return the time zones of settings."""
    if isinstance(value, list):
        return {zone for item in value for zone in _zones(item)}
    if not isinstance(value, dict):
        return set()
    own = {value["timeZone"]} if isinstance(value.get("timeZone"), str) else set()
    return own.union(*map(_zones, value.values()))


class Recorded(Struct, frozen=True):
    """What a file says: the case, the answers of services by source, the policy, and what was decided.

    `program` is the version that wrote it. `incomplete` are keys of the decision that the same program does
    not come to from the file alone.
    """

    case: Case
    answers: Mapping[str, Any]
    settings: Settings
    decision: Document
    program: str = ""
    incomplete: tuple[str, ...] = ()


def to_document(
    case: Case,
    answers: Mapping[str, Any],
    policy: tuple[Document, list[str]],
    decision: Document,
    public: Collection[str],
) -> tuple[Document, tuple[Hidden, ...]]:
    """Return the document of a file, and what was replaced in it. `policy` is that of `policy_of`."""
    settings, left_out = policy
    body = {
        "decision": decision,
        "leftOut": left_out,
        "settings": settings,
        "answers": dict(answers),
        "case": encoded(case),
    }
    stand_ins = StandIns(body, {*public, *_zones(settings), "host.invalid"}, _kinds(case))
    replaced = {"replaced": dict(stand_ins.counts)}
    head = {"apiVersion": API_VERSION, "kind": KIND, "version": VERSION, "program": __version__}
    return {**head, **replaced, **stand_ins.of(body)}, stand_ins.hidden


def _kinds(case: Case) -> dict[str, str]:
    """Return what the names in a case are of. A word that names several things is of the last kind."""
    nodes = (case.node, *case.others, *(group.node for group in case.groups))
    return {
        **{text: "labels" for node in nodes for pair in node.labels.items() for text in pair},
        **{pod.owner.name: "workloads" for pod in case.pods if pod.owner is not None},
        **{budget.name: "budgets" for budget in case.budgets},
        **{pod.namespace: "namespaces" for pod in case.pods},
        **{pod.name: "pods" for pod in case.pods},
        **{node.uid: IDS for node in nodes},
        **{pod.uid: IDS for pod in case.pods},
        **{node.zone: "zones" for node in nodes},
        **{node.pool: "pools" for node in nodes},
        **{node.name: "nodes" for node in nodes},
    }


def to_file(document: Document) -> str:
    """Return the document as the text of a file."""
    return as_yaml(as_json(document))


def from_file(data: bytes) -> Recorded:
    """Return what a file says; ValueError says what is wrong with it."""
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} bytes, so `reconciler record` did not write it")
    try:
        read = read_yaml(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("it is no UTF-8 text") from error
    if read.mistakes:
        (line, _), mistake = read.mistakes[0]
        raise ValueError(f"line {line}: {mistake.message}")
    document = read.value
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ValueError(f"it has no `kind: {KIND}`; `reconciler record NODE` writes such a file")
    if document.get("version") != VERSION:
        shown = limits.excerpt(document.get("version"))
        raise ValueError(f"it has version {shown}, and this program reads {VERSION}")
    parts = {
        key: found if isinstance(found := document.get(key) or {}, dict) else None
        for key in ("settings", "answers", "decision", "case")
    }
    for key, found in parts.items():
        if found is None:
            raise ValueError(f"{key}: is no mapping")
    try:
        case = decoded(Case, parts["case"])
    except ValueError as error:
        raise ValueError(f"case: {error}") from error
    incomplete = document.get("incomplete") or []
    return Recorded(
        case,
        parts["answers"] or {},
        parse_settings(to_file(parts["settings"] or {}), "settings"),
        parts["decision"] or {},
        limits.text(str(document.get("program", "")), limits.NAME),
        tuple(map(str, incomplete)) if isinstance(incomplete, list) else (),
    )


def differences(before: Document, after: Document) -> list[str]:
    """Return the keys of two decisions that differ."""
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]
