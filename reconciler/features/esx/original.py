"""The file `esx.yaml` of maintenance-controller, as settings of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.settings.mistakes import Mistake, Path
from reconciler.settings.originals import OF_DRAINS, UNKNOWN, Key, Original, Translated, put, translate

_CENTERS = "vCenters"
_PERIOD = "has no effect: it is looked at each 5 s"

_KEYS = (
    Key(("intervals", "check", "period"), ("sources", "esx", "every")),
    Key(("intervals", "check", "jitter"), words="has no effect: vCenter is asked by one process only"),
    Key(("intervals", "vmShutdown", "timeout"), ("esx", "shutdownTimeout")),
    Key(("intervals", "vmShutdown", "period"), words=_PERIOD),
    *OF_DRAINS,
    Key(("alarms",), ("sources", "esx", "alarms")),
)
_LOGIN = ("username", "password")


def _is_one(value: Mapping[str, Any]) -> bool:
    return _CENTERS in value


def _translate(value: Mapping[str, Any]) -> Translated:
    """Return the settings: there is no budget, and every pod is evicted, as there."""
    evicts = {"emptyDir": "Evict", "unmanagedPods": "Evict"}
    settings: dict[str, Any] = {
        "esx": {"enabled": True},
        "sources": {"esx": {"enabled": True, "rebootOk": True}},
        "events": {"Reboot": dict(evicts), "Redeploy": dict(evicts)},
        "budget": {"maxUnavailable": "100%"},
    }
    found = translate(value, _KEYS, settings, apart=(_CENTERS,))
    return _with_centers(found, value.get(_CENTERS))


def _with_centers(found: Translated, given: object) -> Translated:
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
    meanings: list[tuple[Path, str]] = [
        ((_CENTERS, str(key)), known.get(key, UNKNOWN)) for key in centers if key != "credentials"
    ]
    insecure = {key: text for key, text in centers.items() if key == "insecure" and text is not None}
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
    return Translated(settings, block, whole, {**found.places, **places}, (*found.mistakes, *mistakes))


def _unsecret(text: object, key: str, zone: str) -> str:
    """Return a text that names where a secret is, as a variable where the file has the secret itself."""
    if isinstance(text, str) and re.fullmatch(r"\$\{[^}]+\}", text):
        return text
    name = re.sub(r"[^A-Za-z0-9]", "_", f"vcenter_{zone}_{key}").upper()
    return f"${{{name}}}"


ESX_YAML = Original("esx.yaml", _is_one, _translate)
