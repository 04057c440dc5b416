"""Remove each rule from a copy of the program, and check that its test fails.

Run by `nox -s mutants`. A mutant is one small edit. Its text must occur exactly once, so that a list that no
longer matches the code is an error and not a quiet success. This list has the rules of the laws and some of
no law. The lists of the `*rules.py` beside it have the others, each with the test file that fails without it.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from tests.laws.ahead_rules import AHEAD_RULES
from tests.laws.calendar_rules import CALENDAR_RULES
from tests.laws.check_rules import CHECK_RULES
from tests.laws.client_rules import CLIENT_RULES
from tests.laws.cloud_rules import CLOUD_RULES
from tests.laws.denial_rules import DENIAL_RULES
from tests.laws.drain_rules import DRAIN_RULES
from tests.laws.group_rules import GROUP_RULES
from tests.laws.hint_rules import HINT_RULES
from tests.laws.history_rules import HISTORY_RULES
from tests.laws.hook_rules import HOOK_RULES
from tests.laws.limit_rules import LIMIT_RULES
from tests.laws.metric_rules import METRIC_RULES
from tests.laws.mutant import Mutant
from tests.laws.notice_rules import NOTICE_RULES
from tests.laws.outcome_rules import OUTCOME_RULES
from tests.laws.page_rules import PAGE_RULES
from tests.laws.people_rules import PEOPLE_RULES
from tests.laws.pool_rules import POOL_RULES
from tests.laws.prospect_rules import PROSPECT_RULES
from tests.laws.readiness_rules import READINESS_RULES
from tests.laws.request_rules import REQUEST_RULES
from tests.laws.rights_rules import RIGHTS_RULES
from tests.laws.rules import RULES
from tests.laws.schedule_rules import SCHEDULE_RULES
from tests.laws.serving_rules import SERVING_RULES
from tests.laws.simulate_rules import SIMULATE_RULES
from tests.laws.slot_rules import SLOT_RULES
from tests.laws.tenant_rules import TENANT_RULES
from tests.laws.trials import ROOT, files_of, try_all
from tests.laws.undone_rules import UNDONE_RULES
from tests.laws.waiting_rules import WAITING_RULES
from tests.laws.workflow_rules import WORKFLOW_RULES

__all__ = ["MUTANTS", "ROOT", "main"]

DEFAULT = "reconciler/profiles/default.yaml"

# For rules that one direct test of the law shows: the properties of these files take long.
_LAW_8 = "tests/laws/test_law_08_a_converged_pass_writes_nothing.py"
_AFTER_THE_WINDOW = (
    "&& notHeld && notDeferred && approved && othersFirst && spacingKept && budgetLeft && replacementReady"
)
_LAW_12 = "tests/laws/test_law_12_an_event_is_acknowledged_only_when_all_is_drained.py"


MUTANTS = (
    Mutant(
        5,
        "a silent source stops no drain",
        "reconciler/profiles/case.py",
        "return any(not present or any(one.asks for one in present) for present in found)",
        "return any(any(one.asks for one in present) for present in found)",
        "tests/laws/test_law_05_unknown_is_not_healthy.py",
    ),
    Mutant(
        0,
        "one pass does not end a case and begin the next",
        "reconciler/profiles/state_machine.py",
        "        if step.next is State.OPERATIONAL:\n            break\n",
        "",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        6,
        "an unknown event of another number is another event",
        "reconciler/profiles/case.py",
        "not known.condition and nameless",
        "not known.condition",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        4,
        "a node that is drained again asks for a window",
        DEFAULT,
        "- check: drainDue && startsAllowed && clockTrusted && leftToUs && windowOpen &&",
        "- check: drainDue && startsAllowed && clockTrusted && leftToUs &&",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        4,
        "an event that may not start waits",
        "reconciler/profiles/triggers/start_drain.py",
        "        one.may_start and one.event.kind is",
        "        one.event.kind is",
        "tests/profiles/triggers/test_start_drain.py",
    ),
    Mutant(
        4,
        "no machine goes for an event that waits",
        "reconciler/profiles/situation.py",
        "if not waits(self.record, one.event))",
        "if True)",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        4,
        "a drain does nothing for an event that waits",
        "reconciler/profiles/case.py",
        "return tuple(one for one in record.events if not one.waits)",
        "return record.events",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        0,
        "an adopted drain begins as every start does",
        DEFAULT,
        "- check: drainDue && startsAllowed && clockTrusted && leftToUs && windowOpen && startPlanned",
        "- check: drainDue && windowOpen && startPlanned",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        6,
        "every source of an adopted node has to be known",
        "reconciler/profiles/case.py",
        "    if adopted:\n",
        "    if False:\n",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        6,
        "every event of an adopted node has to be over",
        "reconciler/profiles/case.py",
        "or (adopted and not",
        "or (False and not",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        0,
        "pods that stay hold the machine",
        "reconciler/profiles/checks/replace_due.py",
        "    if held:\n        return held, until\n",
        "",
        "tests/passes/decide/test_closed_nodes.py",
    ),
    Mutant(
        1,
        "a drain cordons",
        "reconciler/passes/decide/planned.py",
        "        unschedulable=unschedulable,\n        labels=labels,",
        "        labels=labels,",
    ),
    Mutant(
        1,
        "no drain where the cordon failed",
        "reconciler/passes/act.py",
        "_attempt_write(outcome_name(node), write, writer)\n        if outcome.result is not Result.DONE:\n",
        "_attempt_write(outcome_name(node), write, writer)\n        if False:\n",
    ),
    Mutant(
        1,
        "somebody's uncordon stops us",
        DEFAULT,
        "  - check: uncordonedByOthers\n    trigger: leaveSurge && dismiss\n    next: operational\n",
        "",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        2,
        "only our own is undone",
        "reconciler/model/record.py",
        "return self in (Cordon.OURS, Cordon.ADOPTED_MECHANIC)",
        "return self is not Cordon.NONE",
    ),
    Mutant(
        2,
        "a cordon before us is foreign",
        "reconciler/profiles/triggers/cordon.py",
        "whose = Cordon.FOREIGN if",
        "whose = Cordon.OURS if",
    ),
    Mutant(
        2,
        "only what `adopt` names is adopted",
        "reconciler/profiles/checks/cordon_adopted.py",
        "adopts = Adoptable.MECHANIC in settings.adopt",
        "adopts = True",
    ),
    Mutant(
        3,
        "a start wants a place",
        "reconciler/profiles/checks/budget_left.py",
        "if not refusals:",
        "if True:",
    ),
    Mutant(
        3, "the limit", "reconciler/profiles/budget.py", "if len(held) < places:", "if len(held) <= places:"
    ),
    Mutant(
        3,
        "a start takes a place",
        "reconciler/passes/decide/one_node.py",
        'progress.places = progress.places.take(node, "ours, starting")',
        "pass",
    ),
    Mutant(
        3,
        "only some kinds are exempt",
        "reconciler/profiles/exemption.py",
        "if one.event.kind in exempt and one.lost_from",
        "if one.lost_from",
    ),
    Mutant(
        3,
        "short notice leaves no time to wait",
        "reconciler/profiles/judging.py",
        "max(policy.lead_time, SHORT_NOTICE)",
        "policy.lead_time",
    ),
    Mutant(
        3,
        "exempt is what is due",
        "reconciler/profiles/exemption.py",
        "return any(moment <= situation.now for moment",
        "return any(moment for moment",
    ),
    Mutant(
        3,
        "NotReady counts",
        "reconciler/profiles/budget.py",
        "if not because or _long_gone(",
        'if not because or because == "NotReady" or _long_gone(',
    ),
    Mutant(
        3,
        "a start holds its place whatever the node's state",
        "reconciler/profiles/budget.py",
        "    if node.name in ours:\n",
        "    if node.name in ours and not _long_gone(node, settings, now):\n",
    ),
    Mutant(
        3,
        "a tainted node is out of service",
        "reconciler/model/node.py",
        'return f"taint {found}" if found else ""',
        'return ""',
        "tests/model/test_node.py",
    ),
    Mutant(
        3,
        "the earlier one first",
        "reconciler/model/urgency.py",
        "deadline or _NEVER, ",
        "_NEVER, ",
    ),
    Mutant(
        3,
        "what has started first",
        "reconciler/model/urgency.py",
        "return (not self.started, ",
        "return (True, ",
    ),
    Mutant(3, "the worse kind first", "reconciler/model/urgency.py", "-self.kind.severity)", "0)"),
    Mutant(
        3,
        "the deadline and not the date",
        "reconciler/profiles/urgency.py",
        "Urgency(event.kind, latest, ",
        "Urgency(event.kind, event.not_before, ",
    ),
    Mutant(4, "windows", "reconciler/profiles/judging.py", "if openness.open:", "if True:"),
    Mutant(
        4,
        "a forecast knows the absolute freezes",
        "reconciler/profiles/judging.py",
        "if unfrozen == deadline:",
        "if True:",
        "tests/profiles/test_judging.py",
    ),
    Mutant(
        4, "absolutely not allowed", "reconciler/profiles/judging.py", "if openness.absolute:", "if False:"
    ),
    Mutant(
        4,
        "outsideWindow: Never",
        "reconciler/profiles/judging.py",
        "if policy.outside_window is OutsideWindow.NEVER:",
        "if False:",
    ),
    Mutant(
        4,
        "the report says what was overruled",
        "reconciler/profiles/judging.py",
        "return True, why_now, None, openness.because",
        'return True, why_now, None, ""',
    ),
    Mutant(
        3,
        "a replacement still to come counts",
        "reconciler/passes/decide/__init__.py",
        "settings.budget, now, missing, faults)",
        "settings.budget, now, (), faults)",
    ),
    Mutant(
        3,
        "what was replaced is on record",
        "reconciler/passes/decide/one_node.py",
        "        progress.ledger = replace(progress.ledger, replaced=gone)\n",
        "",
    ),
    Mutant(
        4,
        "the profile asks for the window",
        DEFAULT,
        f"&& windowOpen && startPlanned {_AFTER_THE_WINDOW}",
        f"&& startPlanned {_AFTER_THE_WINDOW}",
    ),
    Mutant(
        6,
        "a machine that goes is not uncordoned",
        "reconciler/profiles/checks/machine_stays.py",
        "    if machine is not None and machine.deleting:\n",
        "    if False:\n",
    ),
    Mutant(
        5,
        "unknown holds",
        "reconciler/profiles/case.py",
        "        one.answer is Answer.UNKNOWN\n        or any(",
        "        any(",
    ),
    Mutant(
        5,
        "a vanished source holds",
        "reconciler/profiles/case.py",
        "return switched_on(source)",
        "return False",
    ),
    Mutant(
        5,
        "an unreadable event may be ours",
        "reconciler/profiles/case.py",
        "return signal.kind is Kind.UNKNOWN and",
        "return False and",
    ),
    Mutant(
        5,
        "old heartbeats are unknown",
        "reconciler/passes/assess.py",
        'replace(reading, answer=Answer.UNKNOWN, signals=(), because=f"its last heartbeat is {age}")',
        "reading",
    ),
    Mutant(
        5,
        "who waits goes on waiting",
        "reconciler/profiles/checks/drain_asked.py",
        "if situation.case.unknown:",
        "if False:",
    ),
    Mutant(
        5,
        "a list that ARM refuses reports nothing",
        "reconciler/sources/polled.py",
        "        if answer.problem:\n            return self._unknown(answer.problem)\n",
        "",
    ),
    Mutant(
        5,
        "a list that ARM was not asked for reports nothing new",
        "reconciler/sources/polled.py",
        "        if now >= answer.again:\n            return self._unknown(",
        "        if False:\n            return self._unknown(",
    ),
    Mutant(
        5,
        "a VM that a list misses is unknown",
        "reconciler/sources/polled.py",
        "        if name in answer.unseen:",
        "        if False:",
    ),
    Mutant(
        5,
        "a status that can't be read is unknown",
        "reconciler/sources/arm/source.py",
        "            # Not in `seen`, because what can't be read is unknown.\n            continue\n",
        "            found = None\n",
    ),
    Mutant(
        5,
        "what is switched off holds nothing",
        "reconciler/passes/decide/one_node.py",
        "switched_on = context.reading_names.__contains__",
        "switched_on = lambda source: True  # noqa: E731",
    ),
    Mutant(
        5, "no agent is one line", "reconciler/passes/assess.py", "if not reading.installed:", "if False:"
    ),
    Mutant(
        6,
        "Started is not gone",
        "reconciler/profiles/checks/events_gone.py",
        "if case.present:",
        "if False:",
        "tests/profiles/checks/test_events_gone.py",
    ),
    Mutant(
        6,
        "the event settles",
        "reconciler/profiles/situation.py",
        "return until if self.now < until else None",
        "return None",
    ),
    Mutant(
        6,
        "a plan for later leaves the node its settle time",
        "reconciler/profiles/checks/planned_for_later.py",
        "if until is not None:",
        "if False:",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        6,
        "a plan for later is no current event",
        "reconciler/profiles/case.py",
        "return self.over or self.only_later",
        "return self.over",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        6,
        "the node is Ready",
        "reconciler/profiles/checks/node_ready.py",
        "if not situation.node.ready:",
        "if False:",
    ),
    Mutant(
        6,
        "the node settles",
        "reconciler/profiles/checks/node_ready.py",
        "if since and until and situation.now < until:",
        "if False:",
    ),
    Mutant(
        6,
        "an event that comes back starts the settling again",
        "reconciler/profiles/case.py",
        "if case.quiet else None",
        "if case.quiet else record.quiet_since",
    ),
    Mutant(
        7,
        "what no check says is said",
        "reconciler/passes/decide/planned.py",
        "after.holds if after.holds or acts else _unspoken_holds(one)",
        "after.holds",
    ),
    Mutant(
        7, "blocked checks are holds", "reconciler/profiles/state_machine.py", "tuple(found.values())", "()"
    ),
    Mutant(
        7,
        "the text shows holds",
        "reconciler/report/columns.py",
        """yield "held", f"{hold['reason']}{until}  [{hold['check']}]\"""",
        "yield from ()",
    ),
    Mutant(
        8,
        "the record is written when it changed",
        "reconciler/passes/decide/planned.py",
        "if text != recorded:",
        "if text:",
    ),
    Mutant(
        8,
        "quiet since the first quiet pass",
        "reconciler/profiles/case.py",
        "quiet = (record.quiet_since or now",
        "quiet = (now",
        f"{_LAW_8}::test_a_node_that_settles_keeps_the_moment_at_which_its_events_were_gone",
    ),
    Mutant(
        8,
        "a drain's time-out is a moment of change",
        "reconciler/passes/decide/reporting.py",
        "drain.since + drain.timeout if drain is not None and drain.timeout is not None else None",
        "None",
        f"{_LAW_8}::test_the_time_out_of_a_stuck_drain_is_a_moment_of_change",
    ),
    Mutant(
        8,
        "an old heartbeat is a moment of change",
        "reconciler/passes/decide/__init__.py",
        "*expiries(seen)",
        "*()",
        f"{_LAW_8}::test_the_moment_at_which_a_heartbeat_is_too_old_is_a_moment_of_change",
    ),
    Mutant(
        8,
        "a lost node's place is a moment of change",
        "reconciler/profiles/checks/budget_left.py",
        "(situation.places.eases_at, exempt_from(situation))",
        "(exempt_from(situation),)",
        "tests/profiles/checks/test_budget_left.py",
    ),
    Mutant(
        8,
        "the moment from which a node needs no place is a moment of change",
        "reconciler/profiles/checks/budget_left.py",
        "(situation.places.eases_at, exempt_from(situation))",
        "(situation.places.eases_at,)",
        "tests/profiles/checks/test_budget_left.py",
    ),
    Mutant(
        9,
        "a later pass goes on with the drain",
        "reconciler/passes/decide/draining.py",
        "if drain is not None and under_way and wanted:",
        "if drain is not None and under_way and wanted and walked.transitions:",
    ),
    Mutant(
        9,
        "cordon and record are one patch",
        "reconciler/passes/decide/planned.py",
        "        annotations=annotations,\n",
        "        annotations={} if unschedulable is not None and walked.state else annotations,\n",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        10,
        "looking is not writing",
        "reconciler/passes/observe.py",
        "ledger = _ledger(reader, settings, gaps)",
        "ledger = reader.write_ledger(reader.ledger()) or reader.ledger()  # type: ignore",
    ),
    Mutant(
        11,
        "one deterministic order",
        "reconciler/passes/decide/__init__.py",
        "queue = sorted(seen, key",
        "queue = list(seen) or sorted(seen, key",
    ),
    Mutant(
        11,
        "sets are sorted",
        "reconciler/passes/assess.py",
        "sources=tuple(sorted({signal.source for signal in group}))",
        "sources=tuple({signal.source for signal in group})",
    ),
    Mutant(
        12,
        "every VM is a node",
        "reconciler/passes/decide/acknowledging.py",
        '        return f"VM {vm} is not a node of this cluster"\n',
        '        return ""\n',
    ),
    Mutant(
        12,
        "one node for each VM's name",
        "reconciler/passes/decide/acknowledging.py",
        "    if len(names) > 1:\n",
        "    if False:\n",
        f"{_LAW_12}::test_it_is_removed_from_every_node_by_the_next_pass",
    ),
    Mutant(
        12,
        "it says which VMs it is about",
        "reconciler/passes/decide/acknowledging.py",
        "if not all(signal.resources for _, signal in pairs):",
        "if False:",
        f"{_LAW_12}::test_an_event_that_does_not_say_which_vms_it_is_about_is_not_acknowledged",
    ),
    Mutant(
        12,
        "what any of its VMs names counts",
        "reconciler/passes/decide/acknowledging.py",
        "for _, signal in pairs for name in signal.resources",
        "for _, signal in pairs[:1] for name in signal.resources",
        f"{_LAW_12}::test_it_is_removed_from_every_node_by_the_next_pass",
    ),
    Mutant(
        12,
        "every node has heard of it",
        "reconciler/passes/decide/acknowledging.py",
        '        return f"node {names[0]} has not reported it yet"\n',
        '        return ""\n',
    ),
    Mutant(
        12,
        "it has started nowhere",
        "reconciler/passes/decide/acknowledging.py",
        "    if signal.status is not Status.SCHEDULED:\n",
        "    if False:\n",
        f"{_LAW_12}::test_it_is_removed_from_every_node_by_the_next_pass",
    ),
    Mutant(
        12,
        "drained",
        "reconciler/passes/decide/acknowledging.py",
        "        and record.drain is not None\n        and record.drain.done is not None\n",
        "",
        f"{_LAW_12}::test_a_node_that_is_not_empty_yet_keeps_the_others_waiting",
    ),
    Mutant(
        12,
        "cordoned",
        "reconciler/passes/decide/acknowledging.py",
        "        and one.node.unschedulable\n",
        "",
        f"{_LAW_12}::test_it_is_removed_from_every_node_by_the_next_pass",
    ),
    Mutant(
        12,
        "with the event on record",
        "reconciler/passes/decide/acknowledging.py",
        "        and any(signal.id in known.ids for known in record.events)\n",
        "",
        "tests/passes/decide/test_acknowledging.py",
    ),
    Mutant(
        12,
        "no drain begins again",
        "reconciler/passes/decide/acknowledging.py",
        "        and not cases.newly_asking(record, cases.not_dismissed(record, one.judged))\n",
        "",
        f"{_LAW_12}::test_it_is_removed_from_every_node_by_the_next_pass",
    ),
    Mutant(
        12,
        "what may not be any more is taken back",
        "reconciler/passes/decide/acknowledging.py",
        "ids = sorted(may & set(record.acknowledged)) if empty else []",
        "ids = sorted(record.acknowledged) if empty else []",
    ),
    Mutant(
        12,
        "the agent acknowledges what its Node names",
        "jobs/agent/program.py",
        "        named = scheduled_events.from_acknowledgement(annotation)\n",
        "        named = [str(one['EventId']) for one in self._document['Events']]  # type: ignore\n",
    ),
    Mutant(
        12,
        "what has started is not posted",
        "reconciler/sources/imds/signals.py",
        "        if signal.status is Status.SCHEDULED and signal.id and signal",
        "        if signal.id and signal",
        f"{_LAW_12}::test_what_has_started_is_not_posted",
    ),
    Mutant(
        12,
        "only what names our VM is posted",
        "reconciler/sources/imds/signals.py",
        "        if vm.casefold() in (name.strip().casefold() for name in signal.resources)\n",
        "",
        f"{_LAW_12}::test_an_event_that_does_not_say_whose_it_is_is_not_posted",
    ),
    Mutant(
        12,
        "the Node is read again right before",
        "jobs/agent/program.py",
        "            now = self._client.read_annotations()\n        except ClusterError as error:\n"
        "            self._api_failed(LogEvent.CANNOT_READ_NODE, error)\n"
        "            return\n        if now.uid",
        "            now = self._node\n        except ClusterError as error:\n"
        "            self._api_failed(LogEvent.CANNOT_READ_NODE, error)\n"
        "            return\n        if now.uid",
        f"{_LAW_12}::test_what_is_removed_before_it_is_posted_is_not_posted",
    ),
    Mutant(
        12,
        "what IMDS does not report now is not posted",
        "jobs/agent/program.py",
        "        if not self._imds_failures:\n            self._ack",
        "        if True:\n            self._ack",
        f"{_LAW_12}::test_while_imds_is_silent_nothing_is_posted",
    ),
    Mutant(
        12,
        "what was posted is not posted again",
        "jobs/agent/program.py",
        "            self._acknowledged.add(event_id)\n",
        "",
        f"{_LAW_12}::test_an_acknowledgement_is_posted_once_even_if_imds_still_shows_the_event_as_scheduled",
    ),
    Mutant(
        13,
        "a broken record holds its node",
        "reconciler/model/record_text.py",
        "except RecordUnreadable as error:",
        "except ZeroDivisionError as error:",
    ),
    Mutant(
        13,
        "a failed write stays with its node",
        "reconciler/passes/act.py",
        "    except ClusterError as error:\n        return Outcome(node, action",
        "    except ZeroDivisionError as error:\n        return Outcome(node, action",
    ),
    Mutant(
        13,
        "without the ledger only starts wait",
        "reconciler/passes/act.py",
        "refused |= {node.node for node in plan.nodes if node.starts or node.drain_begins}",
        "refused |= {node.node for node in plan.nodes}",
    ),
    Mutant(
        0,
        "a report can always be written",
        "reconciler/report/safe.py",
        'return character.encode("unicode_escape", "surrogatepass").decode("ascii")',
        "return character",
        "tests/report/test_safe.py",
    ),
    Mutant(
        0,
        "a drain rule's namespaces are names or a selector",
        "reconciler/profiles/orders.py",
        "if isinstance(rule.namespaces, LabelSelector) and not rule",
        "if isinstance(rule.namespaces, LabelSelector) or not rule",
        "tests/profiles/test_orders.py",
    ),
    Mutant(
        0,
        "a second is a second",
        "reconciler/sources/request/source.py",
        '"s": 1,',
        '"s": 2,',
        "tests/sources/request/test_source.py",
    ),
    Mutant(
        0,
        "a pause ends at its end",
        "reconciler/profiles/checks/machine_stays.py",
        "if situation.now < until:",
        "if situation.now <= until:",
        "tests/profiles/checks/test_machine_stays.py",
    ),
    Mutant(
        0,
        "nobody waits for a plan for later",
        "reconciler/profiles/checks/planned_for_later.py",
        "for one in case.present)), holds=False)",
        "for one in case.present)))",
        "tests/profiles/checks/test_planned_for_later.py",
    ),
    Mutant(
        0,
        "a plan may have nothing but its end",
        "reconciler/sources/arm/source.py",
        "found.start or found.end or",
        "found.start or",
        "tests/sources/arm/test_source.py",
    ),
    Mutant(
        0,
        "a source that is taken out is waited for by nobody",
        "reconciler/passes/decide/__init__.py",
        "        reading_names(settings),\n",
        '        frozenset({"tickets"}),\n',
        "tests/sources/test_registry.py",
    ),
    Mutant(
        0,
        "the labels that a source wants are read",
        "reconciler/passes/observe.py",
        "of_sources.labels | ",
        "",
        "tests/sources/test_registry.py",
    ),
    Mutant(
        0,
        "the annotations that a source wants are read",
        "reconciler/passes/observe.py",
        "of_sources.annotations | ",
        "",
        "tests/sources/test_registry.py",
    ),
    Mutant(
        0,
        "what a service said is written into the ledger",
        "reconciler/passes/decide/__init__.py",
        "{**progress.ledger.memories, **asked}",
        "{}",
        "tests/sources/test_registry.py",
    ),
    Mutant(
        0,
        "the plan changes when a service is asked again",
        "reconciler/passes/decide/__init__.py",
        "*changes(snapshot.memories, now),",
        "",
        "tests/sources/test_registry.py",
    ),
    Mutant(
        0,
        "ARM's old form in the ledger is read",
        "reconciler/sources/arm/source.py",
        'if "planned" in answer',
        "if False",
        "tests/kubernetes/test_ledger.py",
    ),
    Mutant(
        0,
        "EC2's old form in the ledger is read",
        "reconciler/sources/aws/source.py",
        "if not isinstance(document, list):",
        "if True:",
        "tests/kubernetes/test_ledger.py",
    ),
    Mutant(
        0,
        "what the ledger holds of others stays",
        "reconciler/kubernetes/ledger.py",
        " or key in before",
        " or True",
        "tests/kubernetes/test_ledger.py",
    ),
    Mutant(
        0,
        "a client is made again for new settings",
        "reconciler/sources/clients.py",
        "self._made[source.name][0] != section",
        "False",
        "tests/sources/test_clients.py",
    ),
    Mutant(
        0,
        "a refused list that was not asked for is not kept",
        "reconciler/sources/clients.py",
        "            if listing.asked:",
        "            if True:",
        "tests/sources/test_clients.py",
    ),
    Mutant(
        0,
        "a client keeps no answer for longer than its interval",
        "reconciler/sources/clients.py",
        "min(listing.wait or 0.0, self._seconds)",
        "(listing.wait or 0.0)",
        "tests/sources/test_clients.py",
    ),
    Mutant(
        0,
        "only a node whose maintenance we started is followed",
        "reconciler/sources/arm/source.py",
        "return record.self_service",
        "return True",
        "tests/sources/arm/test_source.py",
    ),
    Mutant(
        0,
        "an offer is only accepted where the settings say so",
        "reconciler/profiles/judging.py",
        "event.plan.accept and ",
        "",
        "tests/profiles/test_planned.py",
    ),
    Mutant(
        0,
        "a drain that goes on is an action",
        "reconciler/model/plan.py",
        " or self.drain is not None or self.stop_drain",
        " or self.stop_drain",
        "tests/passes/decide/test_life_of_a_case.py",
    ),
    Mutant(
        0,
        "a time not allowed is reported while it lasts",
        "reconciler/calendar/windows.py",
        "if run is not None and run.holds(now) and not freeze",
        "if run is not None and not freeze",
        "tests/calendar/test_windows.py",
    ),
    Mutant(
        0,
        "an ended object is deleted once its time is over",
        "reconciler/features/publishing/node_maintenances.py",
        "writes = tuple(_deletion(one, fleet) for one, end in ends if end <= fleet.now)",
        "writes = ()",
        "tests/features/publishing/test_node_maintenances.py",
    ),
    Mutant(
        0,
        "a notifier's failure harms nothing else",
        "reconciler/features/events/registry.py",
        "            except Exception:",
        "            except LookupError:",
        "tests/features/events/test_registry.py",
    ),
    Mutant(
        0,
        "a lost lock ends the pass though a notifier noticed it",
        "reconciler/features/events/registry.py",
        "            except LockLost:\n                raise\n",
        "",
        "tests/features/events/test_registry.py",
    ),
    Mutant(
        0,
        "an escalation is reported once",
        "reconciler/features/notices/escalations.py",
        "self._names, self._reported = names, reported",
        "self._names, self._reported = names, set()",
        "tests/features/notices/test_escalations.py",
    ),
    Mutant(
        0,
        "notices are sent after publications",
        "reconciler/passes/act.py",
        "        *_publish(plan, outside.writer, refused),\n    )\n"
        "    untold |= _notify(plan, sender, lambda node: node.todo.notices, refused)\n",
        "        *(untold := _notify(plan, sender, lambda node: node.todo.notices, refused)),\n"
        "        *_publish(plan, outside.writer, refused),\n    )\n",
        "tests/passes/test_act.py",
    ),
    Mutant(
        0,
        "what was not written is not reported",
        "reconciler/passes/act.py",
        "if write is not None and node.node not in refused:",
        "if write is not None:",
        "tests/passes/test_act.py",
    ),
    Mutant(
        0,
        "a pool that a deletion lowers is scaled up before",
        "reconciler/profiles/checks/surge_due.py",
        "machine.pool.lowered_by_deletion\n",
        "machine.pool.scales\n",
        "tests/profiles/checks/test_surge_due.py",
    ),
    Mutant(
        0,
        "a pool that the deletion lowers is not lowered a second time",
        "reconciler/profiles/triggers/replace.py",
        "and not pool.lowered_by_deletion",
        "",
        "tests/profiles/triggers/test_replace.py",
    ),
    Mutant(
        0,
        "a node with an annotation of a provider is not AKS's",
        "reconciler/features/machines/registry.py",
        "PROVIDERS = (KARPENTER, OPENSHIFT, CLUSTER_API, AKS)",
        "PROVIDERS = (AKS, KARPENTER, OPENSHIFT, CLUSTER_API)",
        "tests/features/machines/test_registry.py",
    ),
    Mutant(
        0,
        "a client is made once",
        "reconciler/features/machines/providers.py",
        "        if provider not in self._made:\n",
        "        if True:\n",
        "tests/features/machines/test_providers.py",
    ),
    Mutant(
        0,
        "objects are read only where they are published",
        "reconciler/features/publishing/registry.py",
        "        if not on and one.sign not in earlier:\n            continue\n",
        "",
        "tests/features/publishing/test_registry.py",
    ),
    Mutant(
        0,
        "objects that can't be read end no pass",
        "reconciler/features/publishing/registry.py",
        "        except ClusterError as error:",
        "        except LookupError as error:",
        "tests/features/publishing/test_registry.py",
    ),
    Mutant(
        0,
        "a drain waits for what is to complete",
        "reconciler/drain/drainer/one.py",
        " or self.judged.action is Action.WAIT",
        "",
        "tests/drain/drainer/test_core.py",
    ),
    Mutant(
        19,
        "a claim of another profile keeps the cordon",
        "reconciler/model/record.py",
        "return self.cordon.may_be_undone and not self.also_claimed_by",
        "return self.cordon.may_be_undone",
    ),
    Mutant(
        19,
        "another profile keeps its part of the record",
        "reconciler/model/record.py",
        "kept = {name: data for name, data in self.profiles if name != profile}",
        "kept: dict[str, ProfileRecord] = {}",
    ),
    Mutant(
        19,
        "one leaves and the claims of the others stay",
        "reconciler/model/record.py",
        "return tuple(one for one in claims if one != claim)",
        "return ()",
    ),
    Mutant(
        19,
        "a node is in maintenance for one profile at a time",
        "reconciler/profiles/state_machine.py",
        "return begins and bool(situation.record.elsewhere)",
        "return False",
    ),
    Mutant(
        19,
        "another profile's cordon is shared",
        "reconciler/profiles/triggers/cordon.py",
        "if before is Cordon.NONE else before",
        "",
    ),
    Mutant(
        19,
        "a drain by hand shows as maintenance",
        "reconciler/model/record.py",
        "        if self.claimed_by:\n            return State.IN_MAINTENANCE\n",
        "",
    ),
    Mutant(
        0,
        "a version alone is no change",
        "reconciler/passes/decide/planned.py",
        "recorded if record == one.written else to_annotation(record)",
        "to_annotation(record)",
        "tests/simulation/test_record_versions.py",
    ),
    Mutant(
        0,
        "a drain by hand of version 1 is a person's claim",
        "reconciler/model/record_text.py",
        "Claim(ClaimKind.PERSON, person) if person else Claim",
        "Claim",
        "tests/model/test_record_versions.py",
    ),
    Mutant(
        0,
        "a case of version 1 under a drain by hand goes on",
        "reconciler/model/record_text.py",
        "State.REQUIRED if mine.events else State.OPERATIONAL",
        "State.OPERATIONAL",
        "tests/model/test_record_versions.py",
    ),
    Mutant(
        0,
        "a profile's drain is its own, a person's is not",
        "reconciler/model/record.py",
        "drain=drain.drain if drain and claim in drain.claims else None",
        "drain=drain.drain if drain else None",
        "tests/model/test_record_versions.py",
    ),
    Mutant(
        0,
        "two plugins never share a name",
        "reconciler/profiles/plugins.py",
        "    if name in known:\n",
        "    if False:\n",
        "tests/profiles/test_plugins.py",
    ),
    Mutant(
        0,
        "a check says what its hold waits for",
        "reconciler/profiles/state_machine.py",
        "one.words, one.until, one.waits_for)",
        "one.words, one.until)",
        "tests/profiles/test_plugins.py",
    ),
    Mutant(
        0,
        "a check answers by its own name",
        "reconciler/profiles/plugins.py",
        "            self.name,\n            found.verdict,",
        "            self.ask.__name__,\n            found.verdict,",
        "tests/profiles/test_plugins.py",
    ),
    Mutant(
        0,
        "a condition has a policy of its own",
        "reconciler/settings/schema.py",
        "return self.condition_policy(condition, labels) if condition else self",
        "return self",
        "tests/profiles/test_judging.py",
    ),
    Mutant(
        0,
        "an outcome distinguishes a step from another change",
        "reconciler/model/actions.py",
        "moved = plan.transitions and plan.after is not plan.before",
        "moved = plan.transitions",
        "tests/passes/test_act.py",
    ),
    Mutant(
        0,
        "the demo prints one reason for a cordon",
        "reconciler/simulation/story.py",
        "if hold.code != skipped",
        "if True",
        "tests/simulation/test_story.py",
    ),
    Mutant(
        0,
        "a command imports no other",
        "jobs/cli.py",
        "            formatter.write_dl(sorted(COMMANDS.items()))",
        "            formatter.write_dl([(name, str(self.get_command(ctx, name))) for name in COMMANDS])",
        "tests/jobs/test_cli.py",
    ),
    Mutant(
        0,
        "nodes are named, or selected, and not both",
        "jobs/commands/drain.py",
        "if bool(nodes) == (selector is not None):",
        "if False:",
        "tests/jobs/test_cli.py",
    ),
    *RULES,
    *DRAIN_RULES,
    *LIMIT_RULES,
    *AHEAD_RULES,
    *CALENDAR_RULES,
    *CHECK_RULES,
    *CLIENT_RULES,
    *UNDONE_RULES,
    *CLOUD_RULES,
    *SCHEDULE_RULES,
    *METRIC_RULES,
    *NOTICE_RULES,
    *PAGE_RULES,
    *SERVING_RULES,
    *SLOT_RULES,
    *TENANT_RULES,
    *DENIAL_RULES,
    *HINT_RULES,
    *GROUP_RULES,
    *WAITING_RULES,
    *WORKFLOW_RULES,
    *OUTCOME_RULES,
    *HISTORY_RULES,
    *HOOK_RULES,
    *SIMULATE_RULES,
    *PEOPLE_RULES,
    *POOL_RULES,
    *PROSPECT_RULES,
    *READINESS_RULES,
    *RIGHTS_RULES,
    *REQUEST_RULES,
)


def main(arguments: Sequence[str]) -> int:
    """Try all mutants, or those that are asked for; 1 when one survives or fits no longer."""
    parser = ArgumentParser(
        prog="python -m tests.laws.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("laws", nargs="*", type=int, help="numbers of laws, 0 for the rules of no law")
    parser.add_argument("--only", default="", help="a part of the rule, of the file or of its test file")
    parser.add_argument("--list", action="store_true", help="print the rules, and run nothing")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="runs at a time (cores)")
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not run the tests with nothing removed first"
    )
    asked = parser.parse_args(arguments)
    chosen = [
        one
        for one in MUTANTS
        if (not asked.laws or one.law in asked.laws)
        and any(asked.only in text for text in (one.rule, one.file, *files_of(one)))
    ]
    if not chosen:
        parser.error("no mutant is like that")
    if asked.list:
        for one in chosen:
            print(f"{one.law:>2}  {one.rule:<62}{one.file}")
        return 0
    return try_all(chosen, at_once=asked.at_once, baseline=not asked.no_baseline)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
