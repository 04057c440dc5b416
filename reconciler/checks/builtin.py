"""The built-in checks by the names that profiles use."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.checks.acknowledge_due import acknowledge_due
from reconciler.checks.budget_left import budget_left
from reconciler.checks.clock_trusted import clock_trusted
from reconciler.checks.cordon_adopted import cordon_adopted
from reconciler.checks.drain_asked import drain_asked
from reconciler.checks.events_gone import events_gone
from reconciler.checks.left_by_remediator import left_by_remediator
from reconciler.checks.left_to_us import left_to_us
from reconciler.checks.machine_stays import machine_stays
from reconciler.checks.node_ready import node_ready
from reconciler.checks.others_first import others_first
from reconciler.checks.planned_for_later import planned_for_later
from reconciler.checks.replace_due import replace_due
from reconciler.checks.replacement_ready import replacement_ready
from reconciler.checks.self_service_done import self_service_done
from reconciler.checks.self_service_due import self_service_due
from reconciler.checks.self_service_failed import self_service_failed
from reconciler.checks.spacing_kept import spacing_kept
from reconciler.checks.starts_allowed import starts_allowed
from reconciler.checks.surge_due import surge_due
from reconciler.checks.uncordoned_by_others import uncordoned_by_others
from reconciler.checks.window_open import window_open
from reconciler.engine.situation import Check

CHECKS: Mapping[str, Check] = {
    "acknowledgeDue": acknowledge_due,
    "budgetLeft": budget_left,
    "clockTrusted": clock_trusted,
    "cordonAdopted": cordon_adopted,
    "drainAsked": drain_asked,
    "eventsGone": events_gone,
    "leftByRemediator": left_by_remediator,
    "leftToUs": left_to_us,
    "machineStays": machine_stays,
    "nodeReady": node_ready,
    "othersFirst": others_first,
    "plannedForLater": planned_for_later,
    "replaceDue": replace_due,
    "replacementReady": replacement_ready,
    "selfServiceDone": self_service_done,
    "selfServiceDue": self_service_due,
    "selfServiceFailed": self_service_failed,
    "spacingKept": spacing_kept,
    "startsAllowed": starts_allowed,
    "surgeDue": surge_due,
    "uncordonedByOthers": uncordoned_by_others,
    "windowOpen": window_open,
}
