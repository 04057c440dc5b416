"""The built-in triggers by the names that profiles use."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.engine.situation import Trigger
from reconciler.triggers.acknowledge import acknowledge
from reconciler.triggers.adopt import adopt
from reconciler.triggers.cordon import cordon
from reconciler.triggers.dismiss import dismiss
from reconciler.triggers.give_up import give_up
from reconciler.triggers.leave_surge import leave_surge
from reconciler.triggers.perform_maintenance import perform_maintenance
from reconciler.triggers.replace import replace_machine
from reconciler.triggers.start_drain import drain
from reconciler.triggers.surge import surge
from reconciler.triggers.uncordon import uncordon

TRIGGERS: Mapping[str, Trigger] = {
    "acknowledge": acknowledge,
    "adopt": adopt,
    "cordon": cordon,
    "dismiss": dismiss,
    "drain": drain,
    "giveUp": give_up,
    "leaveSurge": leave_surge,
    "performMaintenance": perform_maintenance,
    "replace": replace_machine,
    "surge": surge,
    "uncordon": uncordon,
}
