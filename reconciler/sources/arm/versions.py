"""The API version of each request to Azure: ours, or an older one that Azure names when it refuses ours.

Azure China and Azure Government get new versions later. A refusal lists the versions that Azure knows there,
in one of these forms (`InvalidApiVersionParameter`, `NoRegisteredProviderFound`, `InvalidResourceType`):

    The api-version '2024-07-01' is invalid. The supported versions are '2024-03-01,2023-09-01'.
    No registered resource provider found for location 'x' and API version '2024-07-01' for type
    'virtualMachines'. The supported api-versions are '2024-03-01, 2023-09-01'.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

Value = TypeVar("Value")

log = logging.getLogger(__name__)

_REFUSALS = frozenset({"InvalidApiVersionParameter", "NoRegisteredProviderFound", "InvalidResourceType"})
_LIST = re.compile(r"supported (?:api-)?versions are '([^']*)'")
_GENERAL = re.compile(r"\d{4}-\d{2}-\d{2}")
_LONGEST = 20_000
"""Characters of a refusal that are read."""

FALLBACKS = 2
"""Older versions that are tried for one request. The first list may be of all of Azure, the second of the
resource provider.
"""


class Versions:
    """The versions in use. A version that was refused is not tried again while the process runs."""

    def __init__(self, pinned: Mapping[str, str], oldest: str) -> None:
        """Start with the pinned version of each request; no version before `oldest` is ever used."""
        self._pinned, self._oldest = pinned, oldest
        self._used = dict(pinned)

    @property
    def note(self) -> str:
        """What people should know about the versions in use, empty if they are the pinned ones."""
        older = sorted(
            {(self._pinned[one], used) for one, used in self._used.items() if used != self._pinned[one]}
        )
        return "; ".join(f"Azure refuses API version {pinned}, so {used} is used" for pinned, used in older)

    def send(self, request: str, work: Callable[[str], Value]) -> Value:
        """Return the result of `work`, which sends the request with the version that it is given.

        If Azure refuses the version and names an older one, the request is sent again with that version.
        Raises the errors of `work`.
        """
        from azure.core.exceptions import HttpResponseError

        version, left = self._used[request], FALLBACKS
        while True:
            try:
                found = work(version)
            except HttpResponseError as error:
                older = older_version(error, version, self._oldest)
                if older is None or not left:
                    raise
                log.warning("Azure refuses API version %s of %s: %s is tried", version, request, older)
                version, left = older, left - 1
            else:
                self._used[request] = version
                return found


def older_version(error: Exception, version: str, oldest: str) -> str | None:
    """Return the newest version before `version` that Azure names in this refusal of `version`.

    None if the error is another one, or names no general version from `oldest` on.
    """
    inner = getattr(error, "error", None)
    if getattr(inner, "code", None) not in _REFUSALS:
        return None
    found = _LIST.search(str(getattr(inner, "message", ""))[:_LONGEST])
    known = [one.strip() for one in found[1].split(",")] if found is not None else []
    if version in known:
        # Something else is wrong, such as the location.
        return None
    usable = (one for one in known if _GENERAL.fullmatch(one) and oldest <= one < version)
    return max(usable, default=None)
