"""What each check type answers, in one table: a type without a row fails a test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given as each
from hypothesis import strategies as st

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.checks.cluster import version
from reconciler.features.workflows.reading import Needs, ReadForChecks
from reconciler.features.workflows.services import (
    STATUS,
    Hypervisor,
    KubernikusAnswer,
    KubernikusQuery,
    PrometheusAnswer,
    PrometheusQuery,
    Sample,
    Value,
)
from reconciler.features.workflows.situation import Fleet, Member, WorkflowSituation
from reconciler.model.event import Kind
from reconciler.model.instructions import Word
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.node import READ_LABELS, Node, Wanted
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.pod import Placement, Pod
from reconciler.model.record import State
from reconciler.model.selector import Requirement
from reconciler.model.values import replace
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown
from reconciler.settings.schema import Settings
from tests.features.workflows.scene import ask, at, config, given, member
from tests.support.builders import (
    NOW,
    PREFIX,
    approval_text,
    condition,
    event,
    judged,
    minutes,
    node,
    pod,
    read_of,
    settings,
    situation,
)

Keys = Mapping[str, object]
ANSWERS: dict[str, Mapping[str, tuple[WorkflowSituation, Keys, CheckResult]]] = {}
"""By type and case: what it sees, its configuration, and the answer with words that are in its reason."""

NO = failed("")
YES = passed()
DUNNO = unknown("")
BUSY = State.IN_MAINTENANCE
ALONE = given()


def ago(seconds: float) -> datetime:
    """So many seconds before now."""
    return NOW - timedelta(seconds=seconds)


OPERATIONAL = Requirement(f"{PREFIX}/maintenance-state", "In", ("operational",))
WAITS, MAINTAINED, FREE = (member("b", state) for state in (State.REQUIRED, BUSY, State.OPERATIONAL))
FOR_ANOTHER = member("b", State.REQUIRED, profile="other")


def choosy(on: str, prefers: Requirement = OPERATIONAL) -> Pod:
    """A pod that prefers some nodes."""
    return replace(pod(f"choosy-{on}", on), placement=Placement(prefers=(prefers,)))


def plain(on: str) -> Pod:
    """A pod that prefers none."""
    return replace(pod(f"plain-{on}", on), placement=Placement())


def running(*pods: Pod, others: tuple[Member, ...] = (WAITS,)) -> WorkflowSituation:
    """A cluster in which these pods are all."""
    by_node = {name: tuple(each for each in pods if each.node == name) for name in ("a", "b")}
    return given(*others, read=ReadForChecks(pods=by_node, unread_pods=""))


ANSWERS["affinity"] = {
    "this node has none": (running(plain("a"), choosy("b")), {}, YES),
    "both have one": (running(choosy("a"), choosy("b")), {}, YES),
    "the other one goes first": (running(choosy("a"), plain("b")), {}, NO),
    "the other one is in maintenance": (running(choosy("a"), others=(MAINTAINED,)), {}, YES),
    "the other one needs no maintenance": (running(choosy("a"), others=(FREE,)), {}, YES),
    "another profile": (running(choosy("a"), others=(FOR_ANOTHER,)), {}, YES),
    "its pod has finished": (running(replace(choosy("a"), phase="Succeeded")), {}, YES),
    "another key": (running(choosy("a", replace(OPERATIONAL, key="cloud.sap/maintenance-state"))), {}, YES),
    "enough are operational": (running(choosy("a"), others=(WAITS, member("c"))), {"minOperational": 1}, YES),
    "too few are": (running(choosy("a"), others=(WAITS, member("c"))), {"minOperational": 2}, NO),
    "another state": (replace(running(), state=State.OPERATIONAL), {}, DUNNO),
    "unreadable": (
        given(WAITS, read=ReadForChecks(unread_pods="needs list pods")),
        {},
        unknown("needs list pods"),
    ),
}


def approved(text: str | None) -> WorkflowSituation:
    """A node with this annotation, in its state for an hour."""
    annotations = {} if text is None else {f"{PREFIX}/approved": text}
    return given(node=node("a", annotations=annotations), since=ago(3600))


def approval(minutes_ago: float, until: float | None = None) -> WorkflowSituation:
    """A node that alice approved so many minutes ago."""
    ends = None if until is None else NOW + minutes(until)
    return approved(approval_text(Word("alice", ago(60 * minutes_ago), ends), workflows=True))


ASK = "reconciler approve a"
ANSWERS["approved"] = {
    "for this run": (approval(59), {}, YES),
    "for the run before": (approval(61), {}, failed(ASK)),
    "it still applies": (approval(9, 5), {}, passed("", NOW + minutes(5))),
    "it has ended": (approval(9, -1), {}, failed(ASK)),
    "from the future": (approval(-9), {}, failed(ASK)),
    "without a time": (approved('{"by": "alice", "workflows": true}'), {}, failed(ASK)),
    "for events only": (approved('{"at": "2026-11-21T11:59:00Z", "events": []}'), {}, failed(ASK)),
    "no JSON": (approved("yes"), {}, unknown(ASK)),
    "nobody has": (approved(None), {}, failed("nobody has approved it yet; reconciler approve a does")),
}

URL = "http://prometheus:9090"
FIRING = PrometheusQuery(URL, 'ALERTS{alertstate="firing"}')


def broken(name: str, state: State = State.OPERATIONAL, *, cordoned: bool = False) -> Member:
    """A node that is NotReady."""
    return replace(member(name, state), node=node(name, ready=False, unschedulable=cordoned))


def pending(since: float | None = 9, *, leaving: bool = False, phase: str = "Pending") -> WorkflowSituation:
    """A cluster with a pod that has been Pending for so many minutes; None: nobody knows for how many."""
    waiting = pod("x", "", deleting_until=NOW if leaving else None)
    waiting = replace(waiting, phase=phase, created=None if since is None else ago(60 * since))
    return given(read=ReadForChecks(pods={"": (waiting,)}, unread_pods=""))


def alerts(*names: str, problem: str = "", others: tuple[Member, ...] = ()) -> WorkflowSituation:
    """A cluster in which these alerts fire."""
    samples = tuple(Sample(1, {"alertname": name}) for name in names)
    return given(*others, read=ReadForChecks(answers={FIRING: PrometheusAnswer(samples, problem)}))


NONE_PENDING: Keys = {"maxPending": 0}
NO_ALERT: Keys = {"alerts": {"url": URL}}
ANSWERS["clusterHealthy"] = {
    "all are Ready": (given(member("b")), {"maxNotReady": 0}, YES),
    "one is not": (given(broken("b")), {"maxNotReady": 0}, NO),
    "one may be NotReady": (given(broken("b")), {"maxNotReady": 1}, YES),
    "in maintenance": (given(broken("b", BUSY)), {"maxNotReady": 0}, YES),
    "cordoned": (given(broken("b", cordoned=True)), {"maxNotReady": 0}, YES),
    "Pending for long": (pending(), NONE_PENDING, NO),
    "not for long": (pending(4), NONE_PENDING, YES),
    "as long as it may be": (pending(5), NONE_PENDING, NO),
    "of an unknown age": (pending(None), NONE_PENDING, YES),
    "runs": (pending(phase="Running"), NONE_PENDING, YES),
    "not checked": (pending(), {}, YES),
    "10m": (pending(), {**NONE_PENDING, "pendingFor": "10m"}, YES),
    "is deleted": (pending(leaving=True), NONE_PENDING, YES),
    "elsewhere": (pending(), {**NONE_PENDING, "namespaces": ["bank"]}, YES),
    "in a namespace that counts": (pending(), {**NONE_PENDING, "namespaces": ["shop"]}, NO),
    "no alert": (alerts(), NO_ALERT, YES),
    "the one that always fires": (alerts("Watchdog"), NO_ALERT, YES),
    "an alert": (alerts("Watchdog", "Down"), NO_ALERT, NO),
    "ignored": (alerts("Down"), {"alerts": {"url": URL, "ignore": ["Down"]}}, YES),
    "no answer": (alerts(problem="no answer"), NO_ALERT, unknown("no answer")),
    "what fails is said before what is unknown": (
        alerts(problem="no answer", others=(broken("b"),)),
        {"maxNotReady": 0, **NO_ALERT},
        failed("NotReady nodes: 1 (b), at most 0 may be"),
    ),
}


def versions(own: str | None) -> WorkflowSituation:
    """A node with this version, in a cluster of several."""
    others = {"c": {"v": "1.34.7"}, "d": {"v": "thiswillnotparse"}, "e": {}}
    return given(
        member("b", labels={"v": "2.3.1"}, profile="other"),
        *(member(name, labels=labels) for name, labels in others.items()),
        node=node("a", labels={"v": own} if own else {}),
    )


ANSWERS["clusterSemver"] = {
    "below the newest": (versions("1.34.7"), {"key": "v"}, YES),
    "the newest of the profile": (versions("1.34.7"), {"key": "v", "profileScoped": True}, NO),
    "the newest": (versions("2.3.1"), {"key": "v"}, NO),
    "no version": (versions("v1.34.7"), {"key": "v"}, DUNNO),
    "no label": (versions(None), {"key": "v"}, DUNNO),
}


def test_versions_have_the_order_of_semver() -> None:
    before = ["alpha", "alpha.1", "alpha.beta", "beta.2", "beta.11", "rc.1"]
    written = [*(f"1.0.0-{text}" for text in before), "1.0.0", "1.0.1", "1.2.0", "1.10.0"]
    rising = [found for text in written if (found := version(text)) is not None]

    assert len(rising) == len(written)
    assert all(lower < higher for lower, higher in pairwise(rising))
    assert version("1.0.0+build.5") == version("1.0.0")


@pytest.mark.parametrize("text", ["1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3.4", "", "9" * 80 + ".0.0"])
def test_anything_else_is_no_version(text: str) -> None:
    assert version(text) is None


DEADLOCK = given(node=node("a", conditions=(condition("KernelDeadlock"),)))
ANSWERS["condition"] = {
    "it has the status": (DEADLOCK, {"type": "KernelDeadlock", "status": "True"}, YES),
    "it has another": (DEADLOCK, {"type": "KernelDeadlock", "status": "False"}, NO),
    "it is not there": (DEADLOCK, {"type": "DiskPressure", "status": "False"}, NO),
}


def hooked(*events: JudgedEvent) -> WorkflowSituation:
    """A node with a hook that has held it for five minutes."""
    held = node("a", annotations={f"{PREFIX}/pre-drain.database": "team storage"})
    return replace(given(node=held, since=ago(300)), platform=situation(None, *events) if events else None)


ANSWERS["hooksDone"] = {
    "held": (
        hooked(),
        {},
        failed(
            "hook pre-drain.database (team storage) holds the drain until its owner removes the annotation,"
            " 2026-11-21T12:05:00Z at most",
            NOW + minutes(5),
        ),
    ),
    "another step": (hooked(), {"step": "post-drain"}, YES),
    "its time is over": (hooked(), {"timeout": "5m"}, YES),
    "the event can't wait": (hooked(judged(event(Kind.PREEMPT, not_before=NOW))), {}, YES),
    "the event is later": (hooked(judged(event(not_before=NOW + minutes(600)))), {}, NO),
}


def hypervisor(name: str = "a", **status: Value | None) -> WorkflowSituation:
    """A node beside this Hypervisor."""
    seen = Hypervisor(name, "u", status={**STATUS, **status}, conditions={"Ready": "True"})
    return given(read=ReadForChecks(hypervisors={name: seen}, unread_hypervisors=""))


NO_CONDITIONS = given(
    read=ReadForChecks(
        hypervisors={"a": Hypervisor("a", "u", status=STATUS, conditions=None)}, unread_hypervisors=""
    )
)
UNREAD = given(read=ReadForChecks(unread_hypervisors="needs list hypervisors"))
EVICTED: Keys = {"evicted": True}
READY: Keys = {"type": "Ready", "status": "True"}
ANSWERS["checkHypervisor"] = {
    "as it should be": (hypervisor(evicted=True), EVICTED, YES),
    "not": (hypervisor(), EVICTED, NO),
    "a list": (hypervisor(traits=("A", "B")), {"traits": ["A", "B"]}, YES),
    "in another order": (hypervisor(traits=("B", "A")), {"traits": ["A", "B"]}, NO),
    "of another type": (hypervisor(evicted=None), EVICTED, DUNNO),
    "only the fields that it names": (hypervisor(evicted=True, traits=None), EVICTED, YES),
    "each field that differs": (
        hypervisor(traits=("A",), numInstances=2),
        {"evicted": True, "traits": ["A"], "numInstances": 0},
        failed("of the Hypervisor, evicted is false, not true, numInstances is 2, not 0"),
    ),
    "another node's": (hypervisor("b"), {"evicted": False}, unknown("there is no Hypervisor a")),
    "unreadable": (UNREAD, EVICTED, unknown("the Hypervisors can't be read: needs list hypervisors")),
}
ANSWERS["hypervisorCondition"] = {
    "it has the status": (hypervisor(), READY, YES),
    "it has another": (hypervisor(), {"type": "Ready", "status": "False"}, NO),
    "it is not there": (hypervisor(), {"type": "Gone", "status": "True"}, NO),
    "of another type": (NO_CONDITIONS, READY, DUNNO),
    "another node's": (hypervisor("b"), READY, unknown("there is no Hypervisor a")),
}

CREDENTIALS = {"name": "cloud-config", "namespace": "kube-system"}
POOLS: Keys = {"cluster": "c", "cloudProviderSecret": CREDENTIALS}
BY_SECRET = KubernikusQuery("c", "kube-system", "cloud-config")
BY_FILE = KubernikusQuery("c", file="provider/cloudprovider.conf")


def kubernikus(answer: KubernikusAnswer | None) -> WorkflowSituation:
    """A cluster of two nodes of which Kubernikus says this."""
    return given(member("b"), read=ReadForChecks(kubernikus={BY_SECRET: answer} if answer else {}))


ANSWERS["kubernikusCount"] = {
    "all": (kubernikus(KubernikusAnswer(2)), POOLS, YES),
    "too few": (kubernikus(KubernikusAnswer(3)), POOLS, NO),
    "no answer": (kubernikus(KubernikusAnswer(problem="no answer")), POOLS, DUNNO),
    "not asked": (kubernikus(None), POOLS, DUNNO),
}

HERE = given(
    member("b", labels={"pool": "gpu", "empty": ""}),
    node=node("a", labels={"role": "web"}, annotations={"owner": "shop", "approved": "true", "count": "1"}),
)
ANSWERS["hasLabel"] = {
    "with its value": (HERE, {"key": "role", "value": "web"}, passed("role")),
    "with another": (HERE, {"key": "role", "value": "db"}, failed("role")),
    "of another node": (HERE, {"key": "pool"}, failed("pool")),
}
ANSWERS["hasAnnotation"] = {
    "with its value": (HERE, {"key": "owner", "value": "shop"}, passed("owner")),
    "with another": (HERE, {"key": "owner", "value": "bank"}, failed("owner")),
    "a label": (HERE, {"key": "role"}, failed("role")),
    # As maintenance-controller reads it.
    "a value without quotes is text": (HERE, {"key": "approved", "value": True}, YES),
}
ANSWERS["anyLabel"] = {
    "with its value": (HERE, {"key": "pool", "value": "gpu"}, passed("pool")),
    "empty": (HERE, {"key": "empty"}, passed("empty")),
    "with another": (HERE, {"key": "pool", "value": "cpu"}, failed("pool")),
    "nowhere": (HERE, {"key": "zone"}, failed("zone")),
}

CROWD = given(member("b", BUSY), member("c", BUSY, profile="other"), member("d", State.REQUIRED))
RACK: Keys = {"max": 1, "groupBy": ["rack"]}


def grouped(own: Mapping[str, str], other: Mapping[str, str]) -> WorkflowSituation:
    """A node beside one in maintenance, with these labels."""
    return given(member("b", BUSY, labels=other), node=node("a", labels=own))


def maintained(*seconds: float) -> WorkflowSituation:
    """A cluster with nodes in maintenance since so many seconds."""
    return given(*(member(f"n{each}", BUSY, since=ago(each)) for each in seconds))


THREE = maintained(10, 30, 20)
OF_ANOTHER = member("b", BUSY, profile="other")
ANSWERS["maxMaintenance"] = {
    "none may be": (CROWD, {"max": 0}, failed("nodes in maintenance: 2 (b, c), the limit is 0")),
    "all that may be": (CROWD, {"max": 2}, failed("nodes in maintenance: 2 (b, c), the limit is 2")),
    "fewer": (CROWD, {"max": 3}, passed("nodes in maintenance: 2 (b, c), the limit is 3")),
    "for another profile": (given(OF_ANOTHER), {"max": 1, "profile": "os"}, YES),
    "it has both": (given(replace(OF_ANOTHER, profiles=("other", "os"))), {"max": 1, "profile": "os"}, NO),
    "an event of the platform has taken it": (given(replace(member("b"), platform=BUSY)), {"max": 1}, NO),
    "its data can't be read": (given(Member(node("b"), problem="it is no JSON")), {"max": 1}, NO),
    "the same group": (grouped({"rack": "1"}, {"rack": "1"}), RACK, NO),
    "another group": (grouped({"rack": "1"}, {"rack": "2"}), RACK, YES),
    "an empty one": (grouped({"rack": ""}, {"rack": "2"}), RACK, NO),
    "the node has none": (grouped({}, {"rack": "2"}), RACK, NO),
    "another zone": (
        grouped({"rack": "1", "zone": "x"}, {"rack": "1", "zone": "y"}),
        {"max": 1, "groupBy": ["rack", "zone"]},
        YES,
    ),
    "groupLabel": (grouped({"rack": "1"}, {"rack": "2"}), {"max": 1, "groupLabel": "rack"}, YES),
    "not yet": (maintained(20), {"max": 1, "skipAfter": "50s"}, failed("", ago(-30))),
    "skipped just now": (maintained(20), {"max": 1, "profile": "os", "skipAfter": "20s"}, YES),
    "in a second": (maintained(20), {"max": 1, "profile": "os", "skipAfter": "21s"}, NO),
    "when three stop counting": (
        THREE,
        {"max": 1, "skipAfter": "1m"},
        failed("", NOW + timedelta(seconds=50)),
    ),
    "when one does": (THREE, {"max": 3, "skipAfter": "1m"}, failed("", ago(-30))),
}


def test_a_limit_of_no_nodes_is_never_kept() -> None:
    assert ask("maxMaintenance", THREE, max=0, skipAfter="1m").until is None


ANSWERS["nodeCount"] = {
    "enough": (given(member("b")), {"count": 2}, YES),
    "too few": (given(member("b")), {"count": 3}, NO),
}

CLOSED = settings('windows: [{name: night, start: "22:00", end: "05:00"}]')
FROZEN = settings("notAllowed: [{name: sale, start: 2026-11-20, end: 2026-11-23}]")


def reported(
    *events: JudgedEvent,
    chosen: Settings | None = None,
    silent: tuple[str, ...] = (),
    fleet: tuple[Node, ...] = (),
) -> WorkflowSituation:
    """A node with these events of the platform."""
    platform = situation(None, *events, chosen=chosen, fleet=fleet)
    return replace(given(), platform=platform, silent=silent)


BOTH = reported(judged(event(Kind.REBOOT)), judged(event(Kind.FREEZE)))
SILENT = reported(silent=("imds can't be read",))
# Their deadlines are 15 minutes before.
TWO_DATES = reported(*(judged(event(not_before=NOW + minutes(wait))) for wait in (90, 45)))
FULL = (node("a"), node("b", unschedulable=True))
ANSWERS["scheduledEvent"] = {
    "no profile of platform events": (ALONE, {}, DUNNO),
    "of the kind": (BOTH, {"kinds": ["Reboot"]}, YES),
    "of another kind": (BOTH, {"kinds": ["Preempt"]}, NO),
    "it drains nothing": (BOTH, {"kinds": ["Freeze"]}, NO),
    "which may be": (BOTH, {"kinds": ["Freeze"], "drains": False}, YES),
    "none": (reported(), {}, NO),
    "a source that can't be read may hide one": (SILENT, {}, DUNNO),
}
ANSWERS["window"] = {
    "no profile of platform events": (ALONE, {}, DUNNO),
    "no windows": (reported(), {}, YES),
    "closed": (reported(chosen=CLOSED), {}, failed("", NOW + minutes(600))),
    "frozen": (reported(chosen=FROZEN), {}, NO),
}
ANSWERS["notAllowed"] = {
    "no profile of platform events": (ALONE, {}, DUNNO),
    "no freeze": (reported(), {}, NO),
    "closed": (reported(chosen=CLOSED), {}, NO),
    "frozen": (reported(chosen=FROZEN), {}, passed("", NOW + minutes(36 * 60))),
}
ANSWERS["deadline"] = {
    "no profile of platform events": (ALONE, {}, DUNNO),
    "the first one is later": (TWO_DATES, {"within": "10m"}, failed("", NOW + minutes(20))),
    "the first one has come": (TWO_DATES, {"within": "30m"}, YES),
    "none": (reported(), {}, NO),
    "a source that can't be read may hide one": (SILENT, {}, DUNNO),
}
ANSWERS["budget"] = {
    "no profile of platform events": (ALONE, {}, DUNNO),
    "a place": (reported(), {}, YES),
    "none": (reported(fleet=FULL), {}, failed("maxUnavailable is 1, taken by b (cordoned by others)")),
    "lost anyway": (reported(judged(event(Kind.PREEMPT, not_before=NOW)), fleet=FULL), {}, YES),
}

UP: Keys = {"url": URL, "query": "sum(up)", "expr": "value <= 1"}
SUM_UP = PrometheusQuery(URL, "sum(up)")
LONG: Keys = {**UP, "query": f"sum({'x' * 3000})"}


def answered(*values: float, problem: str = "", query: object = "sum(up)") -> WorkflowSituation:
    """A Prometheus that returns these samples."""
    answer = PrometheusAnswer(tuple(Sample(value) for value in values), problem)
    return given(read=ReadForChecks(answers={PrometheusQuery(URL, str(query)): answer}))


ANSWERS["prometheusInstant"] = {
    "true": (answered(1), UP, passed("the value is 1, and value <= 1 is true")),
    "false": (answered(2), UP, failed("the value is 2, and value <= 1 is false")),
    "none": (answered(), UP, unknown("returns 0 samples")),
    "no number": (answered(math.nan), UP, unknown("the value is NaN")),
    "no answer": (answered(problem="no answer: refused"), UP, unknown("refused")),
    "not asked": (ALONE, UP, unknown("it was not asked")),
    "an expression without an answer": (answered(1), {**UP, "expr": "value + (value == 1) > 1"}, DUNNO),
    "a long query": (answered(1, query=LONG["query"]), LONG, passed("sum(xxx")),
}


@pytest.mark.parametrize(
    ("key", "wrong", "said"),
    [
        pytest.param("url", "prometheus:9090", "is not a URL", id="url"),
        pytest.param("url", "file:///etc/passwd", "is not a URL", id="file"),
        pytest.param("query", "", "is empty", id="query"),
        pytest.param("expr", "value <", "it ends where a number", id="expression"),
        pytest.param("expr", "__import__('os')", "can't stand in this expression", id="code"),
    ],
)
def test_a_query_that_can_not_be_asked_loads_and_is_unknown(key: str, wrong: str, said: str) -> None:
    keys = {**UP, key: wrong}
    found = config("prometheusInstant", **keys)

    ((where, message),) = found.unusable
    assert where == key
    assert said in message
    assert not CHECK_TYPES["prometheusInstant"].needs(found).queries
    answer = ask("prometheusInstant", answered(1), **keys)
    assert answer.verdict is Verdict.UNKNOWN
    assert f"because of {key}" in answer.reason


def test_a_password_in_a_url_is_not_in_the_answer() -> None:
    keys = {**UP, "url": "http://me:pass@word@prometheus"}

    assert "word" not in ask("prometheusInstant", ALONE, **keys).reason


def test_a_file_needs_only_the_url() -> None:
    found = config("prometheusInstant", url="bananabread")

    assert [key for key, _ in found.unusable] == ["url", "query", "expr"]


TURN: Keys = {"duration": "1m", "leaseName": "turn", "leaseNamespace": "ops"}
TURNS: Keys = {**TURN, "parallel": 2}
FIRST, SECOND = LeaseRef("ops", "turn-0"), LeaseRef("ops", "turn-1")
NO_LEASE = {FIRST: "needs get leases.coordination.k8s.io in ops"}


def taken(since: float | None, holder: str = "b") -> LeaseSeen:
    """A Lease of a minute, taken so many seconds ago."""
    return LeaseSeen(holder, None if since is None else ago(since), timedelta(minutes=1), "7", "uid")


def leases(*seen: LeaseSeen | None) -> WorkflowSituation:
    """A cluster with these Leases, in order."""
    return given(read=ReadForChecks(leases=dict(zip((FIRST, SECOND), seen, strict=False))))


ANSWERS["stagger"] = {
    "nobody has created it": (leases(None), TURN, YES),
    "nobody has taken it": (leases(taken(None)), TURN, YES),
    "it has expired": (leases(taken(61)), TURN, YES),
    "it expires now": (leases(taken(60)), TURN, NO),
    "this node has just taken it": (leases(taken(1, "a")), TURN, NO),
    "until the first expires": (
        leases(taken(10, "c"), taken(20)),
        TURNS,
        failed(
            "node b has taken the Lease ops/turn-1, until 2026-11-21T12:00:40Z",
            NOW + timedelta(seconds=40, microseconds=1),
        ),
    ),
    "one of several is enough": (leases(taken(1), taken(99)), TURNS, YES),
    "unreadable": (given(read=ReadForChecks(unread_leases=NO_LEASE)), TURN, unknown("needs get leases")),
    "another one is free": (
        given(read=ReadForChecks(leases={SECOND: None}, unread_leases=NO_LEASE)),
        TURNS,
        YES,
    ),
}


def test_the_free_lease_is_taken() -> None:
    take = CHECK_TYPES["stagger"].takes(config("stagger", **TURNS), leases(taken(1), taken(99)))

    assert take == LeaseTake(SECOND, "a", NOW, timedelta(minutes=1), taken(99))


def test_a_second_node_of_the_same_pass_waits_for_the_lease() -> None:
    chosen, before = config("stagger", **TURN), leases(None)
    take = CHECK_TYPES["stagger"].takes(chosen, before)
    assert take is not None

    after = given(node=node("b"), read=before.read.taken(take))

    assert ask("stagger", after, **TURN).verdict is Verdict.FAILED
    assert CHECK_TYPES["stagger"].takes(chosen, after) is None


WEEK = ["monday", "tue", "Wed", "thu", "fri", "sat", "sunday"]


def window(start: str, end: str, *weekdays: str, **keys: object) -> Keys:
    """A weekly window."""
    return {"start": start, "end": end, "weekdays": list(weekdays or WEEK), **keys}


DAYS = window("10:30", "15:20", "mon", "tue")
NIGHT = window("22:00", "05:00", "mon")
SECONDS = window("10:30:15", "10:30:45", "mon")
BERLIN = window("10:00", "11:00", "mon", timeZone="Europe/Berlin")
EXCLUDED = window("22:00", "05:00", exclude=["Dec 24", "2026-02-03"])
ANSWERS["timeWindow"] = {
    case: (given(now=datetime.fromisoformat(moment)), keys, YES if opened else NO)
    for case, keys, moment, opened in (
        ("at its start", DAYS, "2020-06-29T10:30:00Z", False),
        ("after its start", DAYS, "2020-06-29T10:30:00.000001Z", True),
        ("before its end", DAYS, "2020-06-29T15:19:59Z", True),
        ("at midnight", NIGHT, "2020-06-30T00:00:00Z", True),
        ("in its seconds", SECONDS, "2020-06-29T10:30:44Z", True),
        ("days that touch", window("00:00", "24:00"), "2020-06-29T00:00:00Z", True),
        ("in summer", BERLIN, "2020-06-29T08:30:00Z", True),
        ("not in winter", BERLIN, "2020-12-28T08:30:00Z", False),
        ("the evening before the date", EXCLUDED, "2026-12-23T23:00:00Z", True),
        ("it ends at midnight", EXCLUDED, "2026-12-24T02:00:00Z", False),
        ("the date", EXCLUDED, "2026-12-24T23:00:00Z", False),
        ("the night that starts on the date", EXCLUDED, "2026-12-25T02:00:00Z", False),
        ("the same date of another year", EXCLUDED, "2027-12-24T23:00:00Z", False),
        ("not the next year", EXCLUDED, "2027-02-03T23:00:00Z", True),
    )
} | {
    "when it opens": (
        given(now=datetime.fromisoformat("2020-06-25T11:00Z")),
        DAYS,
        failed("", datetime.fromisoformat("2020-06-29T10:30:00.000001Z")),
    ),
    "when it closes": (
        given(now=datetime.fromisoformat("2020-06-29T11:00Z")),
        DAYS,
        passed("", datetime.fromisoformat("2020-06-29T15:20Z")),
    ),
    "no length": (ALONE, window("10:00", "10:00"), failed("the window never opens within two years")),
}


def test_a_window_that_is_always_open_has_no_end() -> None:
    assert ask("timeWindow", ALONE, **window("00:00", "24:00")).until is None


WAITED = given(since=ago(12 * 60))
ANSWERS["wait"] = {
    "passed": (WAITED, {"duration": "10m"}, YES),
    "just now": (WAITED, {"duration": "12m"}, NO),
    "no time": (WAITED, {"duration": 0}, YES),
    "later": (WAITED, {"duration": "15m"}, failed("", NOW + timedelta(minutes=3, microseconds=1))),
}


def between(since: str, now: str) -> WorkflowSituation:
    """A node since its last transition."""
    return given(since=datetime.fromisoformat(since), now=datetime.fromisoformat(now))


MON_WED: Keys = {"duration": "30h", "exclude": ["mon", "wed"]}
ANSWERS["waitExclude"] = {
    "a Monday does not count": (between("2022-03-06T12:00Z", "2022-03-08T18:00Z"), MON_WED, NO),
    "the rest of Tuesday does": (between("2022-03-06T12:00Z", "2022-03-08T18:00:01Z"), MON_WED, YES),
    "on an excluded day": (between("2022-03-05T22:00Z", "2022-03-07T17:00Z"), MON_WED, NO),
    # maintenance-controller says no: inside of an excluded day it subtracts that day twice.
    "on it, long enough": (between("2022-03-05T12:00Z", "2022-03-07T17:00Z"), MON_WED, YES),
    "as wait": (given(since=ago(90 * 60)), {"duration": "90m", "exclude": []}, NO),
    "a wait that ends with a day goes on after the excluded days": (
        between("2022-03-06T12:00Z", "2022-03-06T12:00Z"),
        {"duration": "12h", "exclude": ["mon"]},
        failed("", datetime.fromisoformat("2022-03-08T00:00:00.000001Z")),
    ),
}


def test_no_time_passes_if_every_day_is_excluded() -> None:
    answer = ask("waitExclude", ALONE, duration="1s", exclude=WEEK)

    assert (answer.verdict, answer.until) == (Verdict.FAILED, None)


@each(
    st.integers(0, 14 * 24 * 60),
    st.integers(0, 72 * 60),
    st.lists(st.sampled_from(WEEK), max_size=6, unique=True),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
)
def test_a_wait_ends_once_and_when_it_says(begins: int, length: int, excluded: list[str], zone: str) -> None:
    since = NOW + timedelta(minutes=begins)
    scene = given(since=since, now=since)
    keys = {"duration": f"{length}m", "exclude": excluded, "timeZone": zone}

    answer = ask("waitExclude", scene, **keys)

    assert answer.until is not None
    just_before = at(scene, answer.until - timedelta(microseconds=1))
    assert ask("waitExclude", just_before, **keys).verdict is Verdict.FAILED
    for later in (timedelta(), timedelta(hours=7), timedelta(days=1), timedelta(days=3)):
        assert ask("waitExclude", at(scene, answer.until + later), **keys).verdict is Verdict.PASSED


def as_read(scene: WorkflowSituation, needs: Needs) -> WorkflowSituation:
    """What a pass would read of the nodes for these needs."""

    wanted = Wanted(
        needs.conditions | {"Ready"}, PREFIX, annotations=needs.annotations, labels=needs.labels | READ_LABELS
    )

    members = Fleet(replace(member, node=read_of(member.node, wanted)) for member in scene.members)
    return replace(scene, node=read_of(scene.node, wanted), members=members)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "seen", "keys", "expected"),
    [
        pytest.param(kind, *row, id=f"{kind}: {case}")
        for kind, rows in ANSWERS.items()
        for case, row in rows.items()
    ],
)
def test_answers(kind: str, seen: WorkflowSituation, keys: Keys, expected: CheckResult) -> None:
    answer = ask(kind, seen, **keys)

    needs = CHECK_TYPES[kind].needs(config(kind, **keys))
    assert ask(kind, as_read(seen, needs), **keys) == answer, f"`needs` of {kind} lacks what it reads"
    assert answer.verdict is expected.verdict
    assert expected.reason in answer.reason
    assert expected.until in (None, answer.until)
    if answer.until is not None and seen.platform is None:
        before = ask(kind, at(seen, answer.until - timedelta(microseconds=1)), **keys)
        assert before.verdict is answer.verdict
        assert ask(kind, at(seen, answer.until), **keys).verdict is not answer.verdict


def test_every_type_has_a_row() -> None:
    assert ANSWERS.keys() == CHECK_TYPES.keys()


@pytest.mark.parametrize(
    ("kind", "keys", "needs"),
    [
        ("affinity", {}, Needs(all_pods=True)),
        ("clusterHealthy", {}, Needs()),
        ("clusterHealthy", {"maxPending": 1, **NO_ALERT}, Needs(all_pods=True, queries=frozenset({FIRING}))),
        ("kubernikusCount", POOLS, Needs(kubernikus=frozenset({BY_SECRET}))),
        # As in maintenance-controller, half of a reference is none.
        (
            "kubernikusCount",
            {"cluster": "c", "cloudProviderSecret": {"name": "x"}},
            Needs(kubernikus=frozenset({BY_FILE})),
        ),
        (
            "kubernikusCount",
            {"cluster": "c", "url": "https://k.example"},
            Needs(kubernikus=frozenset({replace(BY_FILE, url="https://k.example")})),
        ),
        (
            "kubernikusCount",
            {"cluster": "c", "credentialsFile": "/etc/c"},
            Needs(kubernikus=frozenset({replace(BY_FILE, file="/etc/c")})),
        ),
        ("prometheusInstant", UP, Needs(queries=frozenset({SUM_UP}))),
        ("prometheusInstant", LONG, Needs(queries=frozenset({PrometheusQuery(URL, f"sum({'x' * 3000})")}))),
        ("stagger", TURNS, Needs(leases=frozenset({FIRST, SECOND}))),
    ],
)
def test_it_needs_only_what_it_checks(kind: str, keys: Keys, needs: Needs) -> None:
    assert CHECK_TYPES[kind].needs(config(kind, **keys)) == needs


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        ("checkHypervisor", {}, "names no field"),
        ("checkHypervisor", {"evcited": True}, "evcited"),
        ("checkHypervisor", {"evicted": "perhaps"}, "evicted"),
        ("checkHypervisor", {"numInstances": -1}, "numInstances"),
        ("hasLabel", {"key": None}, "key"),
        ("hooksDone", {"step": "predrain"}, "pre-drain"),
        ("stagger", {**TURN, "parallel": 0}, "from 1 to 100"),
        ("timeWindow", {"start": "10:00", "end": "11:00"}, "weekdays"),
        ("timeWindow", {"start": "10:00", "end": "11:00", "weekdays": []}, "has no days"),
        ("timeWindow", window("25:00", "11:00"), "not a time of day"),
        ("timeWindow", window("10:00", "11:00", exclude=["Feb 30"]), "not a date"),
        ("timeWindow", window("10:00", "11:00", exclude=["24 Dec"]), "not a date"),
    ],
)
def test_what_would_check_nothing_is_a_mistake(kind: str, keys: Keys, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config(kind, **keys)


def test_a_key_that_the_type_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="vlaue"):
        config("hasLabel", key="a", vlaue="b")


@pytest.mark.parametrize(
    ("written", "meant"), [(True, "True"), ("true", "True"), (False, "False"), ("UNKNOWN", "Unknown")]
)
def test_a_status_means_what_is_written_also_as_a_boolean_of_yaml(written: object, meant: str) -> None:
    assert config("condition", type="Ready", status=written).status == meant


@pytest.mark.parametrize("kind", ["condition", "hypervisorCondition"])
def test_another_status_than_the_three_is_a_mistake(kind: str) -> None:
    with pytest.raises(ValueError, match="is not one of True, False, Unknown"):
        config(kind, type="Ready", status="yes")
