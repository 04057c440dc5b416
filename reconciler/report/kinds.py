"""Every kind of hold and of action: those of the core, and those that features declare."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from reconciler import plugins
from reconciler.model import writes
from reconciler.model.holds import OF_THE_CORE, HoldKind
from reconciler.model.outcome import ACTIONS, ActionKind


@cache
def hold_kinds() -> Mapping[str, HoldKind]:
    """Return every kind of hold by its code.

    Raises ValueError, which names both files, if two have one code; and if a feature's kind of hold does not
    say who can end it.
    """
    # Many modules import this one, and a drain by hand does not need the checks.
    from reconciler.profiles import checks

    core = ("reconciler/model/holds.py", OF_THE_CORE)
    of_checks = [
        (plugins.file_of(sys.modules[check.type.ask.__module__]), (check.type.kind,))
        for check in checks.CHECKS.values()
    ]
    of_features = [(plugins.file_of(module), module.FEATURE.holds) for module in plugins.modules("feature")]
    for file, kinds in (core, *of_features):
        if silent := [kind.code for kind in kinds if not kind.who]:
            raise ValueError(f"{file}: the hold {silent[0]} does not say who can end it")
    return plugins.by_name("hold", (core, *of_checks, *of_features), lambda kind: kind.code)


@cache
def action_kinds() -> Mapping[str, ActionKind]:
    """Return every kind of action by its name.

    Raises ValueError, which names both files, if two kinds or two offers have one name, and if a kind of a
    feature has no words.
    """
    core = ("reconciler/model", (*ACTIONS, *writes.ACTIONS))
    of_features = [(plugins.file_of(module), module.FEATURE.actions) for module in plugins.modules("feature")]
    offers = [(plugins.file_of(module), module.FEATURE.offers) for module in plugins.modules("feature")]
    offers += [
        (plugins.file_of(module), tuple(offer for source in module.SOURCES for offer in source.offers))
        for module in plugins.modules("source")
    ]
    plugins.by_name("offer", offers, lambda offer: offer.name)
    offered = [(file, [kind for offer in given for kind in offer.actions]) for file, given in offers]
    for file, kinds in (*of_features, *offered):
        if silent := [kind.name for kind in kinds if not kind.words]:
            raise ValueError(f"{file}: the action {silent[0]} has no words for reports")
    return plugins.by_name("action", (core, *of_features, *offered), lambda kind: kind.name)
