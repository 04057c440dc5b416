"""Laws 5 and 6 against the truth: why each node was drained, and whether that is really over.

Nothing here reads a plan or a record. What the program could not know is left out: events that it was told to
ignore, what happened while it observed or left a node alone, and settle times over a change of its clock.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.history import Broken
from tests.explore.obeyed import Obeyed
from tests.explore.truth import CONDITION, Channel, Told, Truth, asks, is_due, is_plan
from tests.laws import checked

_TOLERANCE = timedelta(seconds=1)
"""A record keeps whole seconds."""


class Cases:
    """For each node by UID: the events for which it was drained, and since when they are really gone."""

    def __init__(self, world: World, truth: Truth, checked: Counter[str], obeyed: Obeyed) -> None:
        """Watch this world from its beginning; `checked` counts the checks of each law."""
        self._world = world
        self._obeyed = obeyed
        self._truth = truth
        self._checked = checked
        self._drained_for: dict[str, set[Told]] = {}
        self._first_for: dict[str, set[Told]] = {}
        """The events that were the only ones when the node was cordoned."""
        self._adopted: set[str] = set()
        self._busy: set[str] = set()
        self._quiet: dict[str, datetime] = {}
        self._ignored: dict[str, set[Kind]] = {}

    # What happens.

    def cordons(self, node: Node, policy: Settings, *, known: bool) -> None:
        """Note that the program cordons a node; `known` says that it has seen the node as it is."""
        self.ends(node)
        self._drained_for[node.uid] = set()
        if known:
            self._learns(node, policy, begins=True)

    def adopts(self, node: Node) -> None:
        """Note that the program takes over the cordon of another tool."""
        self._adopted.add(node.uid)
        self._drained_for.setdefault(node.uid, set())

    def ends(self, node: Node) -> None:
        """Note that a node is open, or that nobody can say any more why it is closed."""
        self._drained_for.pop(node.uid, None)
        self._first_for.pop(node.uid, None)
        self._adopted.discard(node.uid)
        self._busy.discard(node.uid)
        self._quiet.pop(node.uid, None)

    def opened_by_hand(self, node: Node, policy: Settings) -> None:
        """Note that a person uncordons a node: what is reported now may be ignored from now on."""
        told = [one for channel in self._truth.channels(node, policy) for one in channel.told]
        told += self._drained_for.get(node.uid, ())
        self._ignored.setdefault(node.uid, set()).update(_kind(one) for one in told)
        self.ends(node)

    def ignores(self, node: Node, kind: Kind) -> bool:
        """Whether the program may ignore events of this kind on a node, because a person uncordoned it."""
        return _alike(kind) in self._ignored.get(node.uid, ())

    def clock_changed(self) -> None:
        """Note that no time until now can be compared with a time after it."""
        self._quiet.clear()

    # What passes see.

    def looks(self, policy: Settings) -> None:
        """Note which nodes have become quiet when a pass begins that acts."""
        for node in self._looked_at(policy):
            if node.uid in self._busy and not self._is_busy(node, policy):
                self._busy.discard(node.uid)
                self._quiet[node.uid] = self._world.now

    def rests(self, policy: Settings) -> None:
        """Note what the last passes have seen, once they have nothing more to do."""
        for node in self._looked_at(policy):
            self._forget_ignored(node, policy)
            if node.uid in self._drained_for:
                self._learns(node, policy, begins=False)
                self._forget_gone(node, policy)
                if self._is_busy(node, policy):
                    self._busy.add(node.uid)
                    self._quiet.pop(node.uid, None)

    def _looked_at(self, policy: Settings) -> list[Node]:
        return [node for node in self._world.cluster.nodes.values() if policy.manages(node.labels)]

    def _learns(self, node: Node, policy: Settings, *, begins: bool) -> None:
        """Add the events for which the node is certainly drained now.

        For one whose date is to come, or that may wait for a person, this is so only if nothing else is
        reported when the node is cordoned.
        """
        channels = list(self._truth.channels(node, policy))
        told = [one for channel in channels for one in channel.told]
        strange = any(channel.strange for channel in channels)
        alone = begins and not strange and len({(one.what, one.kind) for one in told}) == 1
        ignored = self._ignored.get(node.uid, ())
        asking = [one for one in told if asks(one, node, policy, self._world) and _kind(one) not in ignored]
        if alone:
            self._first_for[node.uid] = set(asking)
        self._drained_for[node.uid] |= {
            one for one in asking if alone or self._is_drained_for(one, node, policy)
        }

    def _is_drained_for(self, one: Told, node: Node, policy: Settings) -> bool:
        """Whether the drain of a node in maintenance is for this event, too."""
        due = is_due(one, self._world) and not is_plan(one, self._world)
        return due and not self._may_wait(one, node, policy)

    def _forget_gone(self, node: Node, policy: Settings) -> None:
        """Forget an event once every source that told it could be read, and has it no more.

        What these sources say later is about other events.
        """
        mine, channels = self._drained_for[node.uid], list(self._truth.channels(node, policy))
        there = {one.what for channel in channels for one in (*channel.told, *channel.hidden)}
        silent = {channel.source for channel in channels if not channel.readable}
        waited = {one.what for one in mine if one.source in silent}
        self._drained_for[node.uid] = {one for one in mine if one.what in there | waited}

    def _forget_ignored(self, node: Node, policy: Settings) -> None:
        ignored = self._ignored.get(node.uid)
        if not ignored:
            return
        channels = list(self._truth.channels(node, policy))
        known = all(channel.readable or not channel.installed for channel in channels)
        there = {_kind(one) for channel in channels for one in (*channel.told, *channel.hidden)}
        if known and not any(channel.strange for channel in channels) and ignored.isdisjoint(there):
            del self._ignored[node.uid]

    # What must hold.

    def uncordons(self, node: Node, policy: Settings, *, steady: bool, asked_azure: bool) -> None:
        """Check an uncordon of the program.

        `steady` says that its clock agrees with the API server's, `asked_azure` that it asked Azure to do the
        maintenance: then it may give up, and the node is open before Azure's plan is over.
        """
        self._checked["5"] += 1
        self._checked["6"] += 1
        if not node.ready:
            raise Broken("6", f"{node.name} is uncordoned, and not Ready")
        mine = self._drained_for.get(node.uid, set())
        channels = list(self._truth.channels(node, policy))
        for channel in channels:
            sources = {one.source for one in mine}
            if channel.source in sources and not channel.readable:
                raise Broken("5", f"{node.name} is uncordoned while {channel.source} can't be read")
            there = [one for one in self._there(channel) if one in mine and self._keeps(one, node, policy)]
            if there:
                raise Broken("6", f"{node.name} is uncordoned while {channel.source} has {there[0].kind}")
        if node.uid in self._adopted:
            self._uncordons_adopted(node, channels)
        settle = policy.uncordon.settle - _TOLERANCE
        quiet = self._quiet.get(node.uid)
        if asked_azure:
            # Once it gives up, it ignores the plan, and what it takes for the same event.
            self._ignored.setdefault(node.uid, set()).add(Kind.REDEPLOY)
        if quiet is not None and not asked_azure:
            self._checked["6 settles"] += 1
            if self._world.now - quiet < settle:
                raise Broken("6", f"{node.name} is uncordoned {self._world.now - quiet} after its last event")
        ready = node.ready_changed
        if steady and ready is not None and self._world.now - ready < settle:
            raise Broken("6", f"{node.name} is uncordoned {self._world.now - ready} after it became Ready")

    def _keeps(self, one: Told, node: Node, policy: Settings) -> bool:
        """Whether a node stays cordoned for an event: it was drained for it, or nothing puts it off."""
        first = self._first_for.get(node.uid, set())
        return one in first or not self._may_wait(one, node, policy)

    def _may_wait(self, one: Told, node: Node, policy: Settings) -> bool:
        """Whether a node may be kept from a drain for an event: by a person, or by AKS, which upgrades it."""
        pool = [each for each in self._world.cluster.nodes.values() if each.agent_pool == node.agent_pool]
        upgraded = any(map(checked.in_upgrade, (node, *pool)))
        return upgraded or self._obeyed.may_wait(one, node, policy)

    def _uncordons_adopted(self, node: Node, channels: list[Channel]) -> None:
        ignored = self._ignored.get(node.uid, set())
        for channel in channels:
            if channel.installed and not channel.readable:
                raise Broken("5", f"{node.name}, adopted, is uncordoned while {channel.source} can't be read")
            there = [one for one in self._there(channel) if one.source != CONDITION]
            if any(_kind(one) not in ignored for one in there):
                raise Broken("6", f"{node.name}, adopted, is uncordoned while {there[0].kind} is reported")

    def _is_busy(self, node: Node, policy: Settings) -> bool:
        mine = self._drained_for.get(node.uid, set())
        sources = {one.source for one in mine}
        return any(
            (channel.source in sources and not channel.readable)
            or any(one in mine for one in self._there(channel))
            for channel in self._truth.channels(node, policy)
        )

    def _there(self, channel: Channel) -> list[Told]:
        return [one for one in (*channel.told, *channel.hidden) if not is_plan(one, self._world)]


def _kind(told: Told) -> Kind:
    return _alike(told.kind)


def _alike(kind: Kind) -> Kind:
    """Return the kind, one for both pauses: a Freeze may be a live migration."""
    return Kind.FREEZE if kind.is_pause else kind
