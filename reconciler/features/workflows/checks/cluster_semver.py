"""clusterSemver: whether another node has a newer version than this node, by a label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial, total_ordering

from msgspec import Struct

from reconciler.features.workflows.input import CheckInput, Fleet
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import ClusterSemverCheck

_NUMBER = r"(?:0|[1-9][0-9]{0,18})"
_WORD = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LONGEST = 63


@total_ordering
class Version(Struct, frozen=True):
    """A version by semver.org 2.0.0, without its build metadata, which has no order."""

    numbers: tuple[int, int, int]
    before_release: tuple[str, ...] = ()

    def __lt__(self, other: Version) -> bool:
        """Compare by precedence (semver.org, 11)."""
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.before_release or not other.before_release:
            return bool(self.before_release) and not other.before_release
        return _ranks(self.before_release) < _ranks(other.before_release)


def _ranks(words: Sequence[str]) -> list[tuple[bool, int, str]]:
    # Numbers come before words.
    return [(False, int(word), "") if word.isdigit() else (True, 0, word) for word in words]


_LOWEST = Version((0, 1, 0))
"""maintenance-controller compares with this version, too."""


def version(text: str) -> Version | None:
    """Return the version, None for any other text, such as `v1.2.3`."""
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    return Version(numbers, tuple(found[4].split(".")) if found[4] else ())


def _needs(config: ClusterSemverCheck) -> Needs:
    return Needs(labels=frozenset({config.key}))


@check_type("clusterSemver", ClusterSemverCheck, _needs)
def cluster_semver(config: ClusterSemverCheck, given: CheckInput) -> CheckResult:
    """Pass when the node's version is below the newest one of the cluster, or of the nodes with the profile.

    Labels of other nodes that are no version are ignored. One of this node makes the answer unknown.
    """
    text = given.node.labels.get(config.key)
    if text is None:
        return unknown(f"the node has no label {config.key} with its version")
    own = version(text)
    if own is None:
        return unknown(f"the label {config.key} is {text!r}, which is no version like 1.34.7")
    scope = given.profile if config.profile_scoped else ""
    key = ("clusterSemver", config.key, scope)
    newest, shown = given.members.once(key, partial(_newest, config.key, scope, given.members))
    if own < newest:
        return passed(f"{config.key} is {text}, and {shown} is newer")
    return failed(f"no node has a newer {config.key} than {text}")


def _newest(key: str, profile: str, members: Fleet) -> tuple[Version, str]:
    """Return the newest version of the nodes, of those with the profile if there is one, and its text."""
    chosen = (member for member in members if not profile or profile in member.profiles)
    labels = {member.node.labels.get(key, "") for member in chosen}
    found = [(one, label) for label in sorted(labels) if (one := version(label)) is not None]
    return max((*found, (_LOWEST, "0.1.0")), key=lambda one: one[0])
