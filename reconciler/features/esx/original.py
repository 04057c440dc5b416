"""The file `esx.yaml` of maintenance-controller, as settings of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from math import ceil
from typing import Any

from reconciler.calendar.values import format_duration
from reconciler.settings.loose import parse_go_duration
from reconciler.settings.mistakes import Mistake, Path
from reconciler.settings.originals import OF_DRAINS, UNKNOWN, Key, Original, Translation, put, translate

# A vCenter lists all its hosts in each query.
OFTEN = timedelta(seconds=10)

_CENTERS = "vCenters"
_PERIOD = "has no effect: it is looked at each 5 s"

_KEYS = (
    Key(("intervals", "check", "period"), ("sources", "esx", "every"), words="at least 10s"),
    Key(("intervals", "check", "jitter"), words="has no effect: vCenter is asked by one process only"),
    Key(("intervals", "vmShutdown", "timeout"), ("esx", "shutdownTimeout")),
    Key(("intervals", "vmShutdown", "period"), words=_PERIOD),
    *OF_DRAINS,
    Key(("alarms",), ("sources", "esx", "alarms")),
)
_LOGIN = ("username", "password")


def _is_one(value: Mapping[str, Any]) -> bool:
    return _CENTERS in value


def _translate(value: Mapping[str, Any]) -> Translation:
    """Return the settings: there is no budget, and every pod is evicted, as there."""
    evicts = {"emptyDir": "Evict", "unmanagedPods": "Evict"}
    settings: dict[str, Any] = {
        "esx": {"enabled": True},
        "sources": {"esx": {"enabled": True, "rebootOk": True}},
        "events": {"Reboot": dict(evicts), "Redeploy": dict(evicts)},
        "budget": {"maxUnavailable": "100%"},
    }
    found = translate(value, _KEYS, settings, apart=(_CENTERS,))
    for path, least in (
        (("sources", "esx", "every"), OFTEN),
        (("esx", "shutdownTimeout"), timedelta(seconds=1)),
    ):
        section, given = reduce(lambda below, key: below.get(key, {}), path[:-1], settings), None
        try:
            given = parse_go_duration(section[path[-1]])
        except (KeyError, ValueError):
            continue  # Where it is no duration, the place of the mistake is that in the file.
        # Go counts in milliseconds, and settings of ours in seconds.
        section[path[-1]] = format_duration(max(least, timedelta(seconds=ceil(given.total_seconds()))))
    return _with_centers(found, value.get(_CENTERS))


def _with_centers(found: Translation, given: object) -> Translation:
    centers = given if isinstance(given, dict) else {}
    logins = centers.get("credentials")
    mistakes: list[Mistake] = []
    if not isinstance(centers.get("templateUrl"), str):
        mistakes.append(Mistake((_CENTERS,), "has no templateUrl"))
    if not isinstance(logins, dict) or not logins:
        mistakes.append(Mistake((_CENTERS,), "has no credentials"))
        logins = {}
    entries: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    places: dict[Path, Path] = {("sources", "esx", "vcenters"): (_CENTERS,)}
    each = "of each of sources.esx.vcenters"
    known = {"templateUrl": f"is url {each}, with $AZ as there", "insecure": f"is insecure {each}"}
    insecure = {key: text for key, text in centers.items() if key == "insecure" and text is not None}
    if str(centers.get("templateUrl")).startswith("http://") and not insecure:
        insecure = {"insecure": True}
        known["templateUrl"] += "; http sends the passwords unencrypted (insecure: true)"
    meanings: list[tuple[Path, str]] = [
        ((_CENTERS, str(key)), known.get(key, UNKNOWN)) for key in centers if key != "credentials"
    ]
    for number, (zone, login) in enumerate(logins.items()):
        ours, theirs = ("sources", "esx", "vcenters", number), (_CENTERS, "credentials", zone)
        entry: dict[str, Any] = {"zone": str(zone), "url": centers.get("templateUrl"), **insecure}
        given_login = login if isinstance(login, dict) else {}
        entries.append({**entry, **{key: given_login[key] for key in _LOGIN if key in given_login}})
        shown.append({**entry, **{key: _unsecret(given_login.get(key), key, str(zone)) for key in _LOGIN}})
        places |= {ours: theirs, (*ours, "url"): (_CENTERS, "templateUrl")}
        places |= {(*ours, "insecure"): (_CENTERS, "insecure")}
        places |= {(*ours, key): (*theirs, key) for key in given_login}
        entered = f"of sources.esx.vcenters[{number}]"
        meanings += [
            ((*theirs, str(key)), f"is {key} {entered}" if key in _LOGIN else UNKNOWN) for key in given_login
        ]
    settings = {**found.settings, "sources": {"esx": {**found.settings["sources"]["esx"]}}}
    block = {**settings, "sources": {"esx": {**found.settings["sources"]["esx"]}}}
    put(settings, ("sources", "esx", "vcenters"), entries)
    put(block, ("sources", "esx", "vcenters"), shown)
    whole = (*found.meanings, *meanings)
    return Translation(settings, block, whole, {**found.places, **places}, (*found.mistakes, *mistakes))


def _unsecret(text: object, key: str, zone: str) -> str:
    """Return a text that names where a secret is, as a variable where the file has the secret itself."""
    if isinstance(text, str) and re.fullmatch(r"\$\{[^}]+\}", text):
        return text
    name = re.sub(r"[^A-Za-z0-9]", "_", f"vcenter_{zone}_{key}").upper()
    return f"${{{name}}}"


ESX_YAML = Original("esx.yaml", _is_one, _translate)
