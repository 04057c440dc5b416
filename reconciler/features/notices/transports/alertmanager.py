"""Alertmanager's API v2: reads the silences of an entry, writes them, and ends them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from reconciler.features.notices.settings import Alertmanager, Matcher, Notify
from reconciler.features.notices.silences import MOST, Silence, WantedSilences, author_of, changes, uid_in
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.transport import NotSent, resolved
from reconciler.model.moments import from_text, to_text

LARGEST = 16 << 20
"""Bytes of a list of silences; Alertmanager keeps those that have ended for five days."""

_ACTIVE = ("active", "pending")


class Silencer:
    """Keeps the silences of one entry as they should be."""

    def __init__(self, entry: Notify, http: Http) -> None:
        """Use the section `alertmanager` of this entry; ValueError if it has none."""
        if entry.alertmanager is None:
            raise ValueError(f"notify {entry.name}: no Alertmanager")
        self._entry, self._settings, self._http = entry, entry.alertmanager, http

    def keep(self, wanted: WantedSilences, now: datetime) -> None:
        """Create, extend and end silences; `now` is aware. Each request is bounded. Raises NotSent.

        What an earlier call has done is found in Alertmanager, so a call that was cut short is repeated.
        """
        write, end = changes(self._entry, wanted, self._found(), now)
        for one in write:
            self._request("POST", "silences", self._body(one, now))
        # After the writes: a silence with other matchers replaces one that ends.
        for each in end:
            self._request("DELETE", f"silence/{quote(each, safe='')}")

    def _found(self) -> list[Silence]:
        answer = self._request("GET", "silences").document()
        if not isinstance(answer, list):
            raise NotSent("the list of silences is not a list")
        found = [_silence(one, author_of(self._entry)) for one in answer]
        return [one for one in found if one is not None][: 2 * MOST]

    def _body(self, silence: Silence, now: datetime) -> dict[str, Any]:
        body = {
            "matchers": [
                {"name": one.name, "value": one.value, "isRegex": one.is_regex, "isEqual": one.is_equal}
                for one in silence.matchers
            ],
            "startsAt": to_text(silence.starts or now),
            "endsAt": to_text(silence.ends),
            "createdBy": author_of(self._entry),
            "comment": silence.comment,
        }
        return {**body, "id": silence.id} if silence.id else body

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        settings: Alertmanager = self._settings
        url = f"{resolved(settings.url).rstrip('/')}/api/v2/{path}"
        headers = {name: resolved(value) for name, value in settings.headers.items()}
        return self._http.send(Post(url, body, headers, method=method, largest=LARGEST))


def _silence(found: Any, author: str) -> Silence | None:
    """Return a silence of this author that has not ended, None for any other, or one that can't be read."""
    try:
        if found["createdBy"] != author or found["status"]["state"] not in _ACTIVE:
            return None
        uid = uid_in(str(found["comment"]))
        matchers = tuple(
            Matcher(
                str(one["name"]),
                str(one["value"]),
                is_regex=bool(one["isRegex"]),
                is_equal=bool(one.get("isEqual", True)),
            )
            for one in found["matchers"]
        )
        ends, starts = from_text(found["endsAt"]), from_text(found["startsAt"])
        return Silence(uid, ends, matchers, str(found["comment"]), str(found["id"]), starts) if uid else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
