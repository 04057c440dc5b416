"""The page: what it says, that it is safe and small, and that everyone can read it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from jobs.runtime.process import Passed
from reconciler.features.page import html
from reconciler.features.page.facts import History, PageFacts
from reconciler.features.page.html import as_html
from reconciler.features.page.live import page_facts
from reconciler.model.case_outcome import CaseResult
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.event import Kind, Signal, Status
from reconciler.model.findings import FindingRow, FindingsPart, KnownFindings
from reconciler.model.outcome import Outcome, Result
from reconciler.model.panels import Panel, Step
from reconciler.model.plan import BudgetUse, DrainState, Hold, Plan, Preview
from reconciler.model.problems import Unseen
from reconciler.model.record import DrainRecord
from reconciler.model.schedule import CaseSchedule, Prospect
from reconciler.model.snapshot import FleetNode
from reconciler.model.values import replace
from tests.features.page.reading import Element, parsed, section
from tests.features.page.scene import facts
from tests.report.ahead_scene import case
from tests.support import builders
from tests.support.builders import NOW, minutes, reported, signal
from tests.support.cases import ended

NASTY = "</li><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m \u202egnp"


@pytest.fixture(scope="module")
def scene() -> PageFacts:
    return facts()


@pytest.fixture(scope="module")
def page(scene: PageFacts) -> Element:
    return parsed(as_html(scene))


def small(
    *signals: Kind, settings: str = "timeZone: Europe/Berlin", history: History | None = None
) -> PageFacts:
    """A pass over three nodes; the first one has an event of this kind in ten minutes."""
    told = [signal(kind, not_before=NOW + minutes(10)) for kind in signals]
    nodes = [builders.node(name, zone=name, pool="web") for name in "abc"]
    seen = builders.snapshot(*nodes, readings={"a": reported(*told)} if told else None)
    chosen = builders.settings(settings)
    passed = Passed(builders.planned(seen, chosen), chosen, rehearsed=False)
    return page_facts(passed, history or History(NOW - timedelta(days=2)))


def shown(found: PageFacts) -> Element:
    return parsed(as_html(found))


def test_a_quiet_fleet_says_that_nothing_is_wrong_and_nobody_must_act() -> None:
    page = shown(small())

    assert "Nothing is wrong" in section(page, "wrong").text
    assert "Nothing in the next 48 hours" in section(page, "next").text
    assert "Nobody" in section(page, "who").text
    assert "Nothing is wrong" in section(shown(small(settings="mode: Observe")), "wrong").text
    assert section(page, "timeline").all("table") == []


def test_the_top_says_what_is_wrong_what_comes_next_and_who_must_act(page: Element) -> None:
    wrong, coming, who = (section(page, name).text for name in ("wrong", "next", "who"))

    assert (
        "1h ago aks-batch-31415926-vmss000017 Preempt: missed: the platform started at Sat 2026-11-21 11:20"
        in wrong
    )
    assert wrong.index("imds: its agent") < wrong.index("1h ago")
    assert "will be missed: it is held by ada" in wrong
    assert "imds: its agent is not ready" in wrong
    assert "Now, Sat 21 13:00" in coming
    assert "the platform may start: Redeploy" in coming
    assert re.search(
        "→ whoever holds it: reconciler resume( aks-web-31415926-vmss[0-9a-f]+)+ ends the hold", who
    )
    # A window opens by itself, so nobody must act for it.
    assert "nobody" not in who


def test_what_was_not_read_is_wrong() -> None:
    seen = small(Kind.REBOOT)
    unknown = Prospect(unknown="not known whether its drain can end: its pods can't be read")
    nodes = tuple(
        replace(one, schedule=replace(one.schedule, prospect=unknown)) if one.schedule is not None else one
        for one in seen.plan.nodes
    )
    wrong = section(shown(replace(seen, plan=replace(seen.plan, nodes=nodes))), "wrong").text

    assert "a unknown: not known whether its drain can end: its pods can't be read" in wrong


def observed(kind: Kind, *, within: float, status: Status = Status.SCHEDULED) -> Element:
    """The page of a pass in mode Observe over two nodes with this event; the budget has a place for one."""
    told = signal(kind, not_before=NOW + minutes(within), status=status)
    nodes = [builders.node(name) for name in "ab"]
    seen = builders.snapshot(*nodes, readings={name: reported(told) for name in "ab"})
    chosen = builders.settings("budget: {maxUnavailable: 1}", mode="Observe")
    passed = Passed(builders.planned(seen, chosen), chosen, rehearsed=True)
    return shown(page_facts(passed, History(NOW - timedelta(days=2))))


@pytest.mark.parametrize(
    ("within", "status", "said"),
    [
        pytest.param(1, Status.SCHEDULED, "1m left", id="due"),
        pytest.param(-5, Status.SCHEDULED, "the platform may start now", id="its date is over"),
        pytest.param(-5, Status.STARTED, "the platform has started", id="started"),
    ],
)
def test_in_mode_observe_the_page_says_that_nobody_guards_what_would_have_started(
    within: float, status: Status, said: str
) -> None:
    page = observed(Kind.PREEMPT, within=within, status=status)
    wrong, coming, who, fleet = (section(page, name).text for name in ("wrong", "next", "who", "fleet"))

    assert f"1 thing is wrong a, b {said} unguarded, Preempt: mode Observe only shows what" in wrong
    assert page.all("title")[0].text == "1 wrong, 1 to do: node maintenance"
    assert "a, b a drain would start, for Preempt" in coming
    assert "→ the owner of the settings: mode: Enforce lets it act; or by hand: reconciler drain a b" in who
    assert ("nobody guards it" in fleet, "draining" in fleet) == (True, False)
    for text in (wrong, coming, who, section(page, "cases").text):
        assert not re.search(r"Nothing is wrong|the drain starts|its drain starts|will be", text)


def test_in_mode_observe_what_would_be_missed_is_wrong_and_what_waits_would_start() -> None:
    page = observed(Kind.REBOOT, within=600)
    wrong, cases = section(page, "wrong").text, section(page, "cases").text

    assert "2 things are wrong a, b 10h left unguarded, Reboot: mode Observe" in wrong
    assert "b would be missed: at Sat 2026-11-21 21:45 2 nodes" in wrong
    assert wrong.endswith("Nothing starts in mode Observe.")
    assert "planned would start at Sat 2026-11-21 20:45" in cases
    assert "its drain would start at Sat 2026-11-21 20:45" in cases
    labels = [
        one.attributes["aria-label"]
        for one in section(page, "timeline").all("svg")
        if "role" in one.attributes
    ]
    assert "Reboot: planned, and not started in mode Observe; planned start Sat 21 20:45" in labels[1]


def blocked(within: float, *, leaving: bool = False, done: bool = False, started: bool = False) -> Element:
    """The page while a budget blocks the drain of a node whose event comes in so many minutes."""
    status = Status.STARTED if started else Status.SCHEDULED
    event = signal(Kind.REDEPLOY, event_id="e", not_before=NOW + minutes(within), status=status)
    drain = DrainRecord(NOW - minutes(9), done=NOW - minutes(1) if done else None)
    case = builders.record(drain=drain, events=(builders.known(Kind.REDEPLOY, ids=("e",)),))
    because = "PDB shop/ledger: needs 1 healthy, has 1"
    refused = Blocker("shop/ledger-0", because, "shop/ledger", leaving=leaving)
    progress = DrainProgress("a", "uid-a", Phase.RUNNING, 9, 8, 8, blockers=(refused,))
    seen = builders.snapshot(
        builders.held_node(case, "a"),
        builders.node("b"),
        readings={"a": reported(event)},
        drains={} if done else {"a": progress},
        pods={} if done else {"a": (builders.pod("ledger-0", on="a"),)},
    )
    chosen = builders.settings()
    passed = Passed(builders.planned(seen, chosen), chosen, rehearsed=False)
    return shown(page_facts(passed, History(NOW - timedelta(days=2))))


def colours(page: Element) -> tuple[str, str, bool, bool]:
    """The colours of the outer cards, and whether the fleet and the timeline show the node red."""
    cards = [section(page, name).attributes["class"].removeprefix("card ") for name in ("wrong", "who")]
    cells = {one.attributes.get("class") for one in section(page, "fleet").all("i")}
    rows = {one.attributes.get("class") for one in section(page, "timeline").all("tr")}
    return cards[0], cards[1], bool(cells & {"blocked", "missed"}), "miss" in rows


@pytest.mark.parametrize(
    ("within", "left"),
    [
        (15, "15m left"),
        (0.5, "less than 1m left"),
        (0, "the platform may start now"),
        (-5, "the platform may start now"),
    ],
)
def test_what_is_blocked_within_the_lead_time_is_red_with_the_minutes_that_are_left(
    within: float, left: str
) -> None:
    page = blocked(within)

    assert colours(page) == ("bad", "bad", True, True)
    because = "shop/ledger-0: PDB shop/ledger: needs 1 healthy, has 1"
    assert section(page, "wrong").text == f"Is anything wrong? ✕ 1 thing is wrong a {left} {because}"
    assert f"1 thing waits for a person: {left} a {left} {because} →" in section(page, "who").text
    assert "blocked, and can't wait" in section(page, "fleet").text
    started = blocked(-5, started=True)
    assert colours(started) == ("bad", "bad", True, True)
    assert "a the platform has started shop/ledger-0: PDB" in section(started, "wrong").text


@pytest.mark.parametrize(
    ("within", "leaving", "done"),
    [
        pytest.param(31, False, False, id="there is time"),
        pytest.param(3, True, False, id="the pod may still leave"),
        pytest.param(3, False, True, id="the node is drained"),
    ],
)
def test_what_can_wait_or_is_not_blocked_is_not_red(within: float, leaving: bool, done: bool) -> None:
    page = blocked(within, leaving=leaving, done=done)

    assert colours(page) == ("good", "good" if done else "ask", False, False)
    assert "left" not in section(page, "who").text


@pytest.mark.parametrize(("within", "said", "card"), [(20, "due in 5m", "bad"), (40, "due in 25m", "ask")])
def test_what_waits_for_a_person_says_how_long_it_can_wait_and_is_red_when_that_is_short(
    within: float, said: str, card: str
) -> None:
    announced = signal(Kind.REDEPLOY, not_before=NOW + minutes(within))
    seen = builders.snapshot(builders.node("a"), builders.node("b"), readings={"a": reported(announced)})
    chosen = builders.settings("events: {Redeploy: {approval: true}}")
    page = shown(page_facts(Passed(builders.planned(seen, chosen), chosen, rehearsed=False), History()))
    who = section(page, "who")

    assert f"1 thing waits for a person: {said} a {said}" in who.text
    assert who.attributes["class"] == f"card {card}"


def test_each_command_of_a_person_is_a_whole_to_copy(page: Element) -> None:
    commands = [
        code.text for code in section(page, "who").all("code") if code.attributes.get("class") == "command"
    ]

    resumed = "reconciler resume aks-web-31415926-vmss000032 aks-web-31415926-vmss000079"
    assert resumed in commands
    assert all(command.startswith(("reconciler ", "kubectl ")) for command in commands)
    (style,) = page.all("style")
    assert re.search(r"\.command\{[^}]*user-select:all", style.text)


def test_a_cluster_without_nodes_is_not_green() -> None:
    chosen = builders.settings()
    passed = Passed(builders.planned(builders.snapshot(), chosen), chosen, rehearsed=False)
    wrong = section(shown(page_facts(passed, History())), "wrong")

    assert (wrong.attributes["class"], "There are no nodes" in wrong.text) == ("card ask", True)


def test_the_history_is_one_number() -> None:
    outcomes = [CaseResult.DRAINED] * 3 + [CaseResult.MISSED, CaseResult.LATE, CaseResult.CANCELLED]
    cases = [
        ended(f"n{number}", at=NOW - timedelta(days=number), outcome=outcome)
        for number, outcome in enumerate(outcomes, 1)
    ]
    old = ended("old", at=NOW - timedelta(days=31), outcome=CaseResult.MISSED)
    since = NOW - timedelta(days=9)
    page = shown(small(history=History(NOW - minutes(5), (old, *cases), read_from=since)))

    said = "Drained before the platform struck: 3 of 5 since Thu 2026-11-12 13:00"
    assert said in section(page, "wrong").text
    assert "Drained before" not in section(shown(small()), "wrong").text


def test_a_past_miss_is_named_with_its_age_and_is_neither_wrong_now_nor_to_be_done() -> None:
    missed = ended("z", at=NOW - timedelta(hours=2), outcome=CaseResult.MISSED)
    page = shown(small(history=History(NOW - timedelta(days=2), (missed,))))
    wrong = section(page, "wrong")

    assert "Nothing is wrong now, after 1 miss in the last 24 hours 2h ago z" in wrong.text
    assert wrong.all("ul")[0].attributes["class"] == "past"
    assert "Nobody" in section(page, "who").text
    assert page.all("title")[0].text == "Nothing wrong, 0 to do: node maintenance"


def test_what_can_not_wait_comes_first_among_what_waits_for_a_person() -> None:
    told = {
        name: signal(Kind.REBOOT, not_before=NOW + minutes(within))
        for name, within in zip("abc", (300, 9, 4), strict=True)
    }
    readings = {name: reported(one) for name, one in told.items()}
    # Our own node is the last one in the order of the plan.
    seen = builders.snapshot(*(builders.node(name) for name in "abc"), readings=readings, own_node="c")
    chosen = builders.settings(mode="Finish")
    passed = Passed(builders.planned(seen, chosen), chosen, rehearsed=False)
    page = shown(page_facts(passed, History(NOW - timedelta(days=2))))

    assert "a person: 4m left c, b, a 4m left mode Finish begins no drain →" in section(page, "who").text
    wrong = section(page, "wrong").text
    missed = "will be missed: mode is Finish, so nothing new is started: mode: Enforce would do"
    assert f"c, b 4m left {missed}" in wrong
    assert f"a {missed}" in wrong


def test_a_condition_that_is_on_most_nodes_is_wrong() -> None:
    said = Signal(
        "condition:KernelReady", Kind.UNKNOWN, Status.STARTED, condition="KernelReady", reports_start=False
    )
    nodes, chosen = map(builders.node, ("n1", "n2")), builders.settings("conditions: {KernelReady: {}}")
    seen = builders.snapshot(*nodes, readings={name: reported(said) for name in ("n1", "n2")})
    plan = builders.planned(seen, chosen)
    page = shown(page_facts(Passed(plan, chosen, rehearsed=False), History(NOW)))

    assert (
        "1 thing is wrong n1, n2 KernelReady is True on 2 of 2 managed nodes" in section(page, "wrong").text
    )
    assert "conditions and their status" in section(page, "who").text


def test_what_failed_and_what_can_not_be_seen_is_wrong() -> None:
    found = small()
    unseen = Unseen("the ledger", "get configmaps", "no last start", "403")
    plan = replace(found.plan, unseen=(unseen,), notes=("the agent is away",))
    outcomes = (Outcome("b", "cordon", Result.FAILED, "the server is away"),)
    page = shown(replace(found, plan=plan, outcomes=outcomes, trouble=("the settings are broken",)))
    text = section(page, "wrong").text

    assert "3 things are wrong" in text
    assert "FAILED: b: cordon: the server is away" in text
    assert "could not see the ledger (needs get configmaps): no last start" in text
    assert "this process the settings are broken" in text
    assert "the agent is away" in section(page, "notes").text


def test_a_case_shows_what_happens_what_holds_it_and_who_can_end_that() -> None:
    found = small(Kind.REBOOT, settings="mode: Finish\ntimeZone: UTC")
    row, *others = section(shown(found), "cases").all("tbody")[0].all("tr")

    assert others == []
    assert row.text.startswith("a zone a, pool web missed, or will be")
    assert "event Reboot scheduled, not before Sat 2026-11-21 12:10 (imds)" in row.text
    assert "unguarded → the owner of the settings: mode: Enforce starts drains again" in row.text


def test_moments_are_in_the_time_zone_of_the_settings() -> None:
    page = shown(small(Kind.REBOOT))

    assert "not before Sat 2026-11-21 13:10" in section(page, "cases").text
    assert page.all("time")[0].text == "Sat 2026-11-21 13:00 CET (Europe/Berlin)"
    assert re.search(r"\d\dT\d\d:", page.by_id("top").text) is None


def test_budgets_sources_and_settings_are_shown(page: Element) -> None:
    assert "8 of at most 8 of 150 nodes are out of service" in section(page, "budgets").text
    assert "shop/ledger shop/ledger-0" in section(page, "budgets").text
    rows = {row.all("th")[0].text: row.text for row in section(page, "sources").all("tbody")[0].all("tr")}
    assert rows["imds"] == "imds in this pass 14 135 1"
    assert "No answer about any node: condition:FreezeScheduled, " in section(page, "sources").text
    words = section(page, "settings")
    assert "out of service at once, for any reason." in words.text
    assert "Windows" in [one.text for one in words.all("h3")]


def ready(note: str = "", rest: str = "") -> str:
    """What the page of a pass says of readiness that is known."""
    row = FindingRow("shop/web (Deployment)", "blocks", "1 pod on a", "it allows nothing", "more replicas")
    about, unseen = "2026-11-21T11:51:00Z: 9 pods", "could not see: PersistentVolumes"
    part = FindingsPart("1 of 3 nodes would not drain", about, (unseen,), (row,), rest)
    return section(shown(replace(small(), readiness=KnownFindings(part, note))), "readiness").text


def test_readiness_is_shown_with_its_age_where_it_is_known() -> None:
    assert "Not known here" in section(shown(small()), "readiness").text
    text = ready(rest="and 3 more findings")
    assert (
        "1 of 3 nodes would not drain As of Sat 2026-11-21 12:51 (9m ago): 9 pods could not see: Pers" in text
    )
    assert "shop/web (Deployment) blocks 1 pod on a it allows nothing more replicas and 3 more" in text
    note = "Readiness can't be read: <i>the server</i> is away."
    assert ready(note).startswith(f"Readiness {note} 1 of 3 nodes would not drain")
    only = section(shown(replace(small(), readiness=KnownFindings(note=note))), "readiness").text
    assert only == f"Readiness {note}"


@pytest.mark.parametrize(
    ("history", "said"),
    [
        pytest.param(History(), "Only reconciler serve shows the cases that have ended.", id="report"),
        pytest.param(
            History(NOW - minutes(61)),
            "before Sat 2026-11-21 10:59 are not shown: this process did not run then.",
            id="young",
        ),
        pytest.param(
            History(NOW - minutes(61), read_from=NOW - timedelta(hours=25)),
            "before Sat 2026-11-21 10:59, when this process started, are from the file of --history.",
            id="with a history",
        ),
        pytest.param(
            History(NOW - minutes(61), read_from=NOW - timedelta(hours=5)),
            "Those before Sat 2026-11-21 07:00 are not shown, because only the end of it is read.",
            id="with the end of a history",
        ),
    ],
)
def test_the_page_says_what_of_the_last_hours_it_does_not_know(history: History, said: str) -> None:
    assert section(shown(small(history=history, settings="")), "timeline").text.endswith(said)


def test_text_from_outside_is_neither_markup_nor_a_control_character() -> None:
    told = signal(Kind.REBOOT, not_before=NOW + minutes(10), description=NASTY)
    seen = builders.snapshot(
        builders.node("a", zone=NASTY, pool=NASTY), builders.node("b"), readings={"a": reported(told)}
    )
    chosen = builders.settings()
    plan = replace(builders.planned(seen, chosen), notes=(NASTY,))
    history = History(NOW - timedelta(days=2), (ended(NASTY, pool=NASTY, kind=NASTY),))
    outcomes = (Outcome("a", "cordon", Result.FAILED, NASTY),)
    made = page_facts(Passed(plan, chosen, outcomes), history, (NASTY,))
    html = as_html(made)
    page = parsed(html)

    assert {"script", "img"}.isdisjoint(one.tag for one in page.all())
    assert not [name for one in page.all() for name in one.attributes if name.startswith("on")]
    assert [one for one in html if not one.isprintable() and one != "\n"] == []
    assert "\\x1b[31m \\u202egnp" in page.text


def test_nothing_is_loaded_from_anywhere(scene: PageFacts, page: Element) -> None:
    loads = {"src", "srcset", "data", "action", "background", "poster"}
    elements = page.all()

    assert {"script", "link", "iframe", "object", "form", "base"}.isdisjoint(one.tag for one in elements)
    assert not [one for one in elements if loads & one.attributes.keys()]
    hrefs = [one.attributes["href"] for one in elements if "href" in one.attributes]
    assert hrefs
    assert [one for one in hrefs if not one.startswith("#")] == []
    (style,) = page.all("style")
    assert re.findall(r"@import|url\((?!#)", style.text) == []
    assert not [one for one in elements if "style" in one.attributes]


def test_every_part_has_a_heading_every_table_a_caption_and_every_drawing_words(page: Element) -> None:
    for one in page.all("section"):
        assert page.by_id(one.attributes["aria-labelledby"]).text
    tables = page.all("table")
    assert len(tables) >= 5
    for table in tables:
        assert table.all("caption")[0].text
        assert all("scope" in head.attributes for head in table.all("th"))
    for drawing in page.all("svg"):
        assert drawing.attributes.get("aria-hidden") == "true" or drawing.attributes["aria-label"]
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert sorted(ids) == sorted(set(ids))
    used = {one.attributes["href"] for one in page.all() if "href" in one.attributes}
    assert {one.removeprefix("#") for one in used} <= set(ids)


@pytest.mark.heavy
def test_5000_nodes_with_300_cases_take_less_than_1_mib() -> None:
    found = facts(5000, 345)
    html = as_html(found)

    assert len(found.plan.fleet) == 5000
    cases = section(parsed(html), "cases")
    assert len(cases.all("tbody")[0].all("tr")) >= 300
    assert "more nodes" not in cases.text
    assert len(html.encode()) < 1 << 20


@pytest.mark.heavy
def test_texts_of_any_length_do_not_make_the_page_larger_than_1_mib() -> None:
    """Each of these characters takes six bytes on the page, and each name is as long as names can be."""
    long = "\u202e" * 5000
    names = [f"{number:0250}" for number in range(5000)]
    schedule = CaseSchedule(NOW, missed=True, because=long)
    news = case("a", schedule)
    holds = tuple(Hold("a", "drain", f"{number} {long}") for number in range(10))
    blocked = tuple(Blocker(f"{number}", long, f"{number}") for number in range(10))
    preview = Preview(blockers=blocked)
    nodes = tuple(
        replace(news, node=name, holds=holds, draining=DrainState(preview=preview)) for name in names[:450]
    )
    plan = Plan(
        NOW,
        "Enforce",
        nodes,
        notes=(long,) * 100,
        budget=BudgetUse(5000, 5000, tuple((name, long) for name in names)),
        fleet=tuple(FleetNode(name, closed=long) for name in names),
    )
    past = History(NOW, tuple(ended(name) for name in names[:1000]))
    html = as_html(page_facts(Passed(plan, builders.settings()), past, (long,)))

    assert len(html.encode()) < 1 << 20
    cases = section(parsed(html), "cases")
    rows = len(cases.all("tbody")[0].all("tr"))
    assert rows > 5
    assert f"and {450 - rows} more nodes" in cases.text


def test_the_name_of_a_node_stands_only_for_itself_in_what_a_person_must_do() -> None:
    held = {f"{builders.PREFIX}/hold": '{"by":"ada","at":"2026-11-21T09:10:00Z","reason":"tests"}'}
    readings = {name: reported(signal(Kind.REBOOT)) for name in "ab"}
    seen = builders.snapshot(*(builders.node(name, annotations=held) for name in "ab"), readings=readings)
    chosen = builders.settings()
    page = shown(page_facts(Passed(builders.planned(seen, chosen), chosen), History()))

    assert "whoever holds it: reconciler resume a b ends the hold" in section(page, "who").text


def test_nodes_with_the_same_news_share_an_entry() -> None:
    schedule = CaseSchedule(missed=True, because="two places are too few", cause="places")
    found = small(Kind.REBOOT)
    start = CaseSchedule(NOW + minutes(90), NOW + minutes(90))
    nodes = [case(f"m{number}", schedule) for number in range(5)]
    nodes += [case(f"s{number}", start) for number in range(2)]
    page = shown(replace(found, plan=replace(found.plan, nodes=tuple(nodes))))

    wrong, coming = section(page, "wrong").text, section(page, "next").text
    assert "1 thing is wrong m0, m1, m2 and 2 more will be missed: two places are too few" in wrong
    assert "In 1h30m, Sat 21 14:30 in 1h30m, Sat 21 14:30 s0, s1 the drain starts, for Reboot" in coming


def test_nodes_with_one_cause_share_an_entry_although_each_has_another_date() -> None:
    quiet = small(Kind.REBOOT)
    because = "no window opens before 2026-11-21T1{}:00:00Z, its last heartbeat is {} minutes old"
    nodes = tuple(
        case(f"m{number}", CaseSchedule(missed=True, because=because.format(number, 20 - number)))
        for number in (5, 4, 6)
    )
    chosen = builders.settings("timeZone: Europe/Berlin")
    page = shown(page_facts(Passed(replace(quiet.plan, nodes=nodes), chosen), History()))

    first = "no window opens before Sat 2026-11-21 15:00, its last heartbeat is 16 minutes old"
    for part in ("wrong", "who"):
        assert f"{first} (the first of 3 dates)" in section(page, part).text
        assert "1 thing" in section(page, part).text


def test_the_name_of_a_node_leads_to_its_case(page: Element) -> None:
    (drawn,) = [
        row for row in section(page, "timeline").all("th") if row.text == "aks-web-31415926-vmss000032"
    ]
    (link,) = drawn.all("a")
    target = page.by_id(link.attributes["href"].removeprefix("#"))

    assert target.tag == "tr"
    assert target.text.startswith("aks-web-31415926-vmss000032 zone westeurope-1")
    assert link.attributes["href"] in {one.attributes["href"] for one in section(page, "who").all("a")}
    # A case that has ended has no row, but its node is on the map.
    (past,) = [name for name in section(page, "timeline").all("th") if name.text.endswith("000042")]
    assert page.by_id(past.all("a")[0].attributes["href"].removeprefix("#")).tag == "li"


def test_each_square_of_the_map_leads_to_what_there_is_about_its_node(page: Element) -> None:
    squares = [link for link in section(page, "fleet").all("a") if "title" in link.attributes]
    targets = {
        square.attributes["title"].partition(":")[0]: page.by_id(square.attributes["href"].removeprefix("#"))
        for square in squares
    }

    assert len(targets) == 150
    assert targets["aks-web-31415926-vmss000032"].tag == "tr"
    quiet = "aks-web-31415926-vmss000042"
    assert (targets[quiet].tag, targets[quiet].text) == ("li", f"{quiet}: in service")
    headings = [heading.attributes["id"] for heading in page.all("h2")]
    assert headings.index("fleet") < headings.index("soon") < headings.index("timeline")


def test_a_node_keeps_its_anchor_when_others_become_more_urgent() -> None:
    quiet = small(Kind.REBOOT)
    before = case("a", CaseSchedule(NOW + minutes(90), NOW + minutes(90)))
    after = case("b", CaseSchedule(missed=True, because="a hold"))
    for nodes in ((before,), (after, before)):
        page = shown(replace(quiet, plan=replace(quiet.plan, nodes=nodes)))
        assert page.by_id("node-a").tag == "tr"


def test_a_part_that_breaks_the_program_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OverflowError("a date that no one can show")

    monkeypatch.setattr(html, "chart", broken)
    page = shown(small(Kind.REBOOT))

    said = "2 things are wrong this page internal error: the timeline can't be shown: OverflowError"
    assert said in section(page, "wrong").text
    assert "Reboot scheduled" in section(page, "cases").text


def test_what_other_features_show_first_is_above_all_and_safe() -> None:
    step = Step(NASTY, None, NASTY, (NASTY, "mode: Enforce"), NASTY)
    panel = Panel("Before all else", NASTY, NASTY, NASTY, (step,), NASTY, (NASTY,), ((NASTY,),), NASTY)
    page = shown(replace(small(), panels=(panel,)))
    first, *_ = page.all("h2")

    assert first.text == "Before all else"
    assert page.all("script") == page.all("img") == []
    assert not {"\x1b", "\u202e"} & set(page.text)
    assert "".join(map(str, page.all("pre")[0].children)).splitlines()[1] == "mode: Enforce"
