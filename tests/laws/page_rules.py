"""Rules of the page, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_HTML = "reconciler/features/page/html.py"
_TOP = "reconciler/features/page/top.py"
_TIMELINE = "reconciler/features/page/timeline.py"
_LIVE = "jobs/runtime/live_page.py"
_PAGE_TEST = "tests/features/page/test_page.py"
_TIMELINE_TEST = "tests/features/page/test_timeline.py"
_READINESS = "jobs/runtime/live_readiness.py"
_BOUNDED = "jobs/runtime/bounded_connection.py"
_TAIL = "jobs/runtime/history_tail.py"
_LIVE_TEST = "tests/jobs/test_live_page.py"
_READINESS_TEST = "tests/jobs/test_live_readiness.py"
_BOUNDED_TEST = "tests/jobs/test_bounded_connection.py"
_TAIL_TEST = "tests/jobs/test_history_tail.py"

PAGE_RULES = (
    Mutant(
        0,
        "text from outside is no markup on the page",
        _HTML,
        "        autoescape=True,\n        undefined",
        "        autoescape=False,\n        undefined",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "text from outside has no control characters on the page",
        _HTML,
        "return safe.line(in_zone(text, ",
        "return str(in_zone(text, ",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "long texts do not make the page larger than 1 MiB",
        "reconciler/features/page/cases.py",
        "if size > MOST_BYTES:",
        "if False:",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "what ends by itself asks nobody to do something",
        _TOP,
        "if not one.by_itself:",
        "if True:",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "what a pass failed to do is on top of the page",
        _TOP,
        "            *(Entry(Names(), text) for text in outcome_lines(document)),\n",
        "",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "what is blocked after its latest start is red",
        "reconciler/features/page/facts.py",
        "return schedule.missed or blocked or any(not one.by_itself for one in held)",
        "return False",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "what is blocked before its latest start can wait",
        "reconciler/features/page/facts.py",
        "schedule.latest_start is None or schedule.latest_start > self.plan.now:",
        "schedule.latest_start is None:",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "what can't wait comes first",
        _TOP,
        "    return not presses, (node.platform_time or facts.plan.now) if presses else facts.plan.now\n",
        "    return False, facts.plan.now\n",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "in mode Observe nothing is said to start",
        "reconciler/passes/decide/scheduling.py",
        "{name: replace(one, observed=True) for name, one in found.items()}",
        "found",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "in mode Observe a person is asked about a drain that would start now",
        "reconciler/report/explain/nodes.py",
        "plan.schedule.observed and plan.drain_begins:",
        "False:",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "a dry run leaves each node of the page in its state",
        "reconciler/features/page/fleet.py",
        "state = node.before if rehearsed else node.after",
        "state = node.after",
        "tests/features/page/test_fleet.py",
    ),
    Mutant(
        0,
        "a forecast of a miss is not drawn in the past",
        _TIMELINE,
        'max(known, now), "will be missed"',
        'known, "will be missed"',
        _TIMELINE_TEST,
    ),
    Mutant(
        0,
        "a node that was missed before is red on the timeline",
        _TIMELINE,
        "    if not case.outcome.good:\n        drawing.missed = True\n",
        "    if not case.outcome.good:\n        pass\n",
        _TIMELINE_TEST,
    ),
    Mutant(
        0,
        "a page is made once for each pass",
        _LIVE,
        "self.passed is other.passed",
        "False",
        _LIVE_TEST,
    ),
    Mutant(
        0,
        "a process without the lock shows no page of its own",
        _LIVE,
        "self._passed, self._holder = None, holder",
        "self._holder = holder",
        _LIVE_TEST,
    ),
    Mutant(
        0,
        "a case that ends again after a restart is on the page once",
        _LIVE,
        "_each_once((*self._ended, *cases))",
        "(*self._ended, *cases)",
        _LIVE_TEST,
    ),
    Mutant(
        0,
        "the start of a process reads only the end of a large history",
        _TAIL,
        "start = max(status.st_size - MOST_BYTES, 0)",
        "start = 0",
        _TAIL_TEST,
    ),
    Mutant(
        0,
        "the page does not claim to know what a cut history does not show",
        _TAIL,
        "if whole or lines.counts",
        "if True or lines.counts",
        _TAIL_TEST,
    ),
    Mutant(
        0,
        "a broken clock of an earlier process leaves no case on the page for ever",
        _TAIL,
        "if one.times.ended <= now",
        "if True",
        _TAIL_TEST,
    ),
    Mutant(
        0,
        "the page shows readiness that was read after it",
        _LIVE,
        "and self.readiness is other.readiness",
        "",
        _LIVE_TEST,
    ),
    Mutant(
        0,
        "readiness is read for the page at most once in 15 minutes",
        _READINESS,
        "now - self._began >= APART",
        "True",
        _READINESS_TEST,
    ),
    Mutant(
        0,
        "one read of readiness is under way at most",
        _READINESS,
        "(old and not self._reading)",
        "old",
        _READINESS_TEST,
    ),
    Mutant(
        0,
        "the page keeps readiness that was read before a read failed",
        _READINESS,
        "replace(found, part=before)",
        "found",
        _READINESS_TEST,
    ),
    Mutant(
        0,
        "nobody waits for a read of readiness",
        _READINESS,
        'Thread(target=work, name="readiness", daemon=True).start()',
        "work()",
        _READINESS_TEST,
    ),
    Mutant(
        0,
        "readiness of a huge cluster does not fill the memory of a process that makes passes",
        _BOUNDED,
        "if self._left <= 0:",
        "if False:",
        _BOUNDED_TEST,
    ),
    Mutant(
        0,
        "a read of readiness does not go on without end",
        _BOUNDED,
        "if self._time() > self._ends:",
        "if False:",
        _BOUNDED_TEST,
    ),
    Mutant(
        0,
        "the page says how many findings of readiness it leaves out",
        "reconciler/features/page/readiness.py",
        " if more > 0 else",
        " if False else",
        _PAGE_TEST,
    ),
    Mutant(
        0,
        "the page permits no script",
        _LIVE,
        "\"default-src 'none'; base-uri",
        '"default-src *; base-uri',
        _LIVE_TEST,
    ),
    Mutant(
        0,
        "a part of the page that breaks the program leaves the others",
        _HTML,
        'found, problems = guarded(f"{name} can\'t be shown", make, otherwise)',
        "found, problems = make(), ()",
        _PAGE_TEST,
    ),
)
