"""Each remedy that the program prints is followed, and then the node drains in time and the remedy is gone.

Those about PodDisruptionBudgets are followed on the API server: tests/real/passes/test_remedies.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.drain.refusal import read_denial
from reconciler.features.readiness.findings import WebhookAnswers, WebhookRefusal
from reconciler.features.readiness.judging import ClusterState, judge_nodes, summed_up
from reconciler.model.errors import Rejected
from reconciler.model.instructions import Deferral, PersonHold, Word, deferral_text, hold_text
from reconciler.model.node import Node
from reconciler.model.pod import Placement, Pod, PodSpec, Toleration, Volume
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from reconciler.profiles.case import known
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import BudgetSpec, Workload
from tests.features.readiness import scene
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, approval_text, case_of, minutes
from tests.support.worlds import carry_on, world_of

ROOT = Path(__file__).parents[3]
REASONS = ("drain/refusal.py", "features/readiness/judging.py")
"""Files with functions that return a remedy as the third part of a tuple."""
ELSEWHERE = (
    "tests/real/passes/test_remedies.py",
    "tests/passes/decide/test_unattended.py",
    "tests/features/workflows/test_settings.py",
)
"""Tests that follow other remedies."""

Start = Callable[[], History]
Follow = Callable[[History], object]


def due(hours: float = 5) -> str:
    return f'{{"kind":"Reboot","notBefore":"{NOW + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"}}'


def node(name: str = "a", **labels: str) -> Node:
    return scene.node(name, "1", disk="1", **labels)


def web(number: int = 1, on: str = "a", *, cpu: str = "100m", **changes: object) -> Pod:
    made = scene.pod(f"web-{number}", on, cpu=cpu, ready=True, phase="Running")
    return replace(made, created=NOW - timedelta(days=1), **changes)  # type: ignore[arg-type]


def at(
    *pods: Pod,
    text: str = "",
    others: tuple[Node, ...] = (node("b"),),
    budgets: tuple[BudgetSpec, ...] = (),
    counted: bool = True,
) -> Start:
    """A node that is due in five hours, with these pods, and budgets, if a controller can be `counted`."""

    def start() -> History:
        asked = replace(scene.node("a", "1", disk="1"), annotations={REQUEST: due()})
        history = History(world_of([asked, *others], pods), builders.settings(text))
        if budgets and counted:
            controlled(history)
        for budget in budgets:
            history.cluster.add_budget(budget)
        carry_on(history.world)
        return history

    return start


def controlled(history: History) -> None:
    """Give the pods a controller that can be scaled, and creates them again."""
    pods = tuple(history.cluster.pods.values())
    history.cluster.adopt(Workload("shop", "web", replicas=len(pods)), *pods)


def settings(text: str) -> Follow:
    def follow(history: History) -> None:
        history.settings = builders.settings(text)

    return follow


def instead(pod: Pod, **changes: object) -> Follow:
    """The owner replaces a pod by a changed one."""

    def follow(history: History) -> None:
        history.cluster.drop_pod(pod.uid)
        history.cluster.add_pod(replace(pod, uid=f"{pod.uid}-2", **changes))  # type: ignore[arg-type]

    return follow


def said(history: History) -> str:
    """Return everything that plan and readiness say about the node and its pods."""
    (plan,) = (one for one in history.until_still().nodes if one.node == "a")
    pods = tuple(history.cluster.pods.values())
    volumes = tuple(VOLUMES.get(claim, ()) for pod in pods for claim in pod.spec.claims)
    seen = ClusterState(
        tuple(history.cluster.nodes.values()),
        pods,
        history.api.budgets(),
        volumes=tuple(one for each in volumes for one in each),
    )
    refusals = tuple(_asked(history, pods))
    judged = summed_up(
        seen,
        judge_nodes(seen, history.settings, history.now),
        history.settings,
        history.now,
        WebhookAnswers(len(refusals), refusals=refusals) if refusals else None,
    )
    texts = [one.remedy for each in judged.workloads for one in each.findings if "a" in one.nodes]
    texts += [one.remedy for one in judged.people if "a" in one.nodes]
    return "\n".join((plan.schedule.forecast_words if plan.schedule is not None else "", *texts))


def _asked(history: History, pods: Iterable[Pod]) -> Iterator[WebhookRefusal]:
    """Yield what readiness has to know of webhooks, which it asks by evictions in a dry run."""
    check = history.api.before_write
    for pod in pods:
        if check is None:
            return
        try:
            check(Call("evict", pod.node, pod.key))
        except Rejected as error:
            denial = read_denial(str(error))
            assert denial is not None
            yield WebhookRefusal(pod.namespace, pod.name, denial.by, denial.words, denial.reached)


def drains(history: History) -> bool:
    """Whether the node drains before its date, and no pod that could go is left there."""
    while history.now < NOW + timedelta(hours=5):
        history.look()
        drain = case_of(history.cluster.nodes["a"]).drain
        if drain is not None and drain.done is not None:
            return not history.cluster.pods_on("a")
        history.wait(minutes(5))
    return False


GPU = Placement(node_selector={"agentpool": "gpu"})
LONG = PodSpec(grace=80 * 60)
RULE = "drain: {rules: [{name: jobs, pods: {app: web}, behavior: %s}]}"
STUCK = web(deleting_until=NOW - minutes(20))
ALONE = web(owner=None)
LOCAL = web(spec=PodSpec(empty_dir=True))
OWN_SKIP = web(labels={"app": "web", f"{PREFIX}/drain": "skip"})
OWN_WAIT = web(labels={"app": "web", f"{PREFIX}/drain": "wait-completed"})
NIGHT = 'windows: [{start: "22:00", end: "23:00"}]\nevents: {Reboot: {outsideWindow: Never}}'
FREEZE = "notAllowed: [{name: sale, start: %s, end: 2026-12-01, reason: sale, absolute: true}]"
ROOM = "Add or uncordon a node on which it can run, change its node selector, affinity or tolerations"
COMPLETES = "Change the rule if the pod does not complete in time."

APPROVED = "events: {Reboot: {approval: true}}"


def approve(history: History) -> None:
    """As `reconciler approve` does."""
    (plan,) = (one for one in history.until_still().nodes if one.node == "a")
    events = tuple(known(one.event) for one in plan.events)
    text = approval_text(word(), *events, case=case_of(history.cluster.nodes["a"]).facts.announced)
    history.cluster.annotate("a", f"{PREFIX}/approved", text)


DENIES = 'admission webhook "guard" denied the request: no'
FAILS = 'failed calling webhook "guard": no answer'
LIMIT = BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), max_unavailable=1)
ONE = replace(LIMIT, max_unavailable=None, min_available=1)
CROWD = (web(cpu="1500m"), web(2, cpu="1500m"), web(3, "b", cpu="3"))

VOLUMES: dict[str, tuple[Volume, ...]] = {
    "zone": (Volume("pv", "shop", "zone", ((Requirement("disk", "In", ("1",)),),)),),
    "here": (Volume("pv", "shop", "here", ((Requirement("metadata.name", "In", ("a",)),),)),),
}


def denied(*, reached: bool) -> Start:
    """A webhook denies evictions, or can't be called."""
    message = DENIES if reached else FAILS

    def check(call: Call) -> None:
        if call.what == "evict":
            raise Rejected(message)

    def start() -> History:
        history = at(web())()
        history.api.before_write = check
        return history

    return start


def allow(history: History) -> None:
    history.api.before_write = None


def word() -> Word:
    return Word("alice@laptop", NOW, None, "disk copy")


def noted(key: str, text: str) -> Start:
    def start() -> History:
        history = at(web())()
        history.cluster.annotate("a", f"{PREFIX}/{key}", text)
        return history

    return start


def removes(key: str) -> Follow:
    return lambda history: history.cluster.annotate("a", f"{PREFIX}/{key}", None)


CASES = [
    pytest.param(
        "Find out what keeps it: a finalizer, a volume, or its kubelet.",
        at(STUCK),
        lambda history: history.cluster.drop_pod(STUCK.uid),
        id="a finalizer goes",
    ),
    pytest.param(
        ROOM,
        at(web(placement=GPU)),
        lambda history: history.cluster.add_node(node("c", agentpool="gpu")),
        id="a node is added",
    ),
    pytest.param(
        ROOM,
        at(web(placement=Placement()), others=(replace(node("b"), unschedulable=True),)),
        lambda history: history.cluster.cordon("b", on=False),
        id="a node is uncordoned",
    ),
    pytest.param(
        ROOM, at(web(placement=GPU)), instead(web(), placement=Placement()), id="another node selector"
    ),
    pytest.param(
        ROOM,
        at(
            web(placement=Placement()),
            others=(replace(node("b"), taints=builders.node(taints=("dedicated",)).taints),),
        ),
        instead(web(), placement=Placement(tolerations=(Toleration("dedicated", "Exists"),))),
        id="a toleration",
    ),
    pytest.param(
        "Start its drain earlier (leadTime)",
        at(web(spec=LONG)),
        settings("events: {Reboot: {leadTime: 3h}}"),
        id="an earlier start",
    ),
    pytest.param(
        "set drain.maxGracePeriod.",
        at(web(spec=LONG)),
        settings("drain: {maxGracePeriod: 10m}"),
        id="a shorter grace period",
    ),
    pytest.param(
        COMPLETES, at(web(), text=RULE % "WaitCompleted"), settings(RULE % "Drain"), id="a rule that drains"
    ),
    pytest.param(
        "Change the rule in drain.rules if the pod never completes by itself.",
        at(web(), text=RULE % "WaitCompleted"),
        settings(""),
        id="a rule goes",
    ),
    pytest.param(
        "Remove this from the pod if it never completes by itself.",
        at(OWN_WAIT),
        instead(OWN_WAIT, labels=web().labels),
        id="the own wait goes",
    ),
    pytest.param(
        "Remove this from the pod, so that a drain evicts it.",
        at(OWN_SKIP),
        instead(OWN_SKIP, labels=web().labels),
        id="the own skip goes",
    ),
    pytest.param(
        "Change the rule in drain.skipPods or drain.rules, so that a drain evicts it.",
        at(web(), text=RULE % "Skip"),
        settings(RULE % "Drain"),
        id="a rule that skips goes",
    ),
    pytest.param(
        "Set events.Reboot.emptyDir: Evict to evict it; the data in the emptyDir is then lost.",
        at(LOCAL, text="events: {Reboot: {emptyDir: Keep}}"),
        settings("events: {Reboot: {emptyDir: Evict}}"),
        id="local storage",
    ),
    pytest.param(
        "or set events.Reboot.unmanagedPods: Evict to evict it.",
        at(ALONE, text="events: {Reboot: {unmanagedPods: Keep}}"),
        settings("events: {Reboot: {unmanagedPods: Evict}}"),
        id="pods without a controller",
    ),
    pytest.param(
        "Give it a controller such as a Deployment, or set",
        at(ALONE, text="events: {Reboot: {unmanagedPods: Keep}}"),
        instead(ALONE, owner=web().owner),
        id="a controller",
    ),
    pytest.param(
        "Give it a controller such as a Deployment.",
        at(ALONE, text="events: {Reboot: {unmanagedPods: Evict}}"),
        instead(ALONE, owner=web().owner),
        id="a controller for an evicted pod",
    ),
    pytest.param(
        "Run at least two replicas.",
        at(web()),
        lambda history: history.cluster.add_pod(web(2, "b")),
        id="two replicas",
    ),
    pytest.param(
        "Keep maxSurge at 1 or more and maxUnavailable at 0, or run at least two replicas.",
        at(web(), text="drain: {restartSingletons: true}", budgets=(ONE,)),
        lambda history: history.cluster.scale("shop/web", 2),
        id="two replicas instead of a restart",
    ),
    pytest.param(
        "Use storage that other nodes can mount",
        at(web(spec=PodSpec(claims=("here",)))),
        instead(web(), spec=PodSpec(claims=("anywhere",))),
        id="other storage",
    ),
    pytest.param(
        "Keep room for it in the zone, or use storage that all zones can mount.",
        at(web(spec=PodSpec(claims=("zone",))), others=(node("b"), scene.node("c", "2", disk="2"))),
        instead(web(), spec=PodSpec(claims=("anywhere",))),
        id="storage of all zones",
    ),
    pytest.param(
        "Add nodes on which it can run, lower its requests",
        at(web(cpu="3"), web(2, "b", cpu="3")),
        lambda history: history.cluster.add_node(node("c")),
        id="room by a node",
    ),
    pytest.param(
        "Add nodes on which it can run, lower its requests",
        at(web(cpu="3"), web(2, "b", cpu="3")),
        instead(web(), placement=Placement(requests=({"cpu": "100m"},))),
        id="room by lower requests",
    ),
    pytest.param(
        "Add nodes on which they can run, or spread the pods over more nodes.",
        at(*CROWD, budgets=(LIMIT,)),
        lambda history: history.cluster.add_node(node("c")),
        id="room for a budget",
    ),
    pytest.param(
        "Wait until it is counted. If it stays so: ",
        at(web(), web(2, "b"), web(3, "b"), budgets=(LIMIT,), counted=False),
        controlled,
        id="a budget is counted",
    ),
    pytest.param(
        "Ask the owner of the webhook or policy why, and exclude evictions by drains from it.",
        denied(reached=True),
        allow,
        id="a webhook lets drains through",
    ),
    pytest.param(
        "Repair the webhook, or set its failurePolicy to Ignore.",
        denied(reached=False),
        allow,
        id="a webhook is repaired",
    ),
    pytest.param(
        "reconciler resume NODE ends it.",
        noted("hold", hold_text(PersonHold(word()))),
        removes("hold"),
        id="resume",
    ),
    pytest.param(
        "reconciler resume NODE ends it, and the deadline of an event does.",
        noted("defer", deferral_text(Deferral(word()))),
        removes("defer"),
        id="resume a deferral",
    ),
    pytest.param(
        "add a window before it, or set outsideWindow: AtDeadline",
        at(web(), text=NIGHT),
        settings(NIGHT.replace("Never", "AtDeadline")),
        id="at the deadline",
    ),
    pytest.param(
        "add a window before it, or set outsideWindow: AtDeadline",
        at(web(), text=NIGHT),
        settings(NIGHT.replace("22:00", "14:00")),
        id="add a window before it",
    ),
    pytest.param(
        "end the freeze before, or make it not absolute",
        at(web(), text=FREEZE % "2026-11-01"),
        settings((FREEZE % "2026-11-01").replace(", absolute: true", "")),
        id="a freeze that is not absolute",
    ),
    pytest.param(
        "end the freeze before, or make it not absolute",
        at(web(), text=FREEZE % "2026-11-01"),
        settings(FREEZE % "2026-11-21T13:00"),
        id="a gap before a freeze",
    ),
    pytest.param(
        "reconciler approve NODE approves it once it is announced.",
        at(web(), text=APPROVED),
        approve,
        id="approve",
    ),
]


@pytest.mark.parametrize(("remedy", "start", "follow"), CASES)
def test_a_remedy_that_is_followed_helps(remedy: str, start: Start, follow: Follow) -> None:
    history = start()
    assert remedy in said(history)

    follow(history)

    assert remedy not in said(history)
    assert drains(history)


def _pieces(path: Path) -> Iterator[str]:
    """Yield the texts of the remedies in a file, in parts where something stands between them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: part.value
        for part in tree.body
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    places = {"Refusal": 3, "Found": 4, "DrainObstacle": 4}
    for part in ast.walk(tree):
        values: list[ast.expr] = []
        match part:
            case ast.Assign(targets=[ast.Name(id="remedy")], value=value):
                values = [value]
            case ast.AugAssign(target=ast.Name(id="remedy"), value=value):
                values = [value]
            case ast.keyword(arg="remedy", value=value):
                values = [value]
            case ast.Call(func=ast.Name(id=name), args=args) if len(args) > places.get(name, len(args)):
                values = [args[places[name]]]
            case ast.FunctionDef(name="_reason" | "_reasons") if str(path).endswith(REASONS):
                tuples = [
                    each for each in ast.walk(part) if isinstance(each, ast.Tuple) and len(each.elts) >= 3
                ]
                values = [each.elts[2] for each in tuples]
        for value in values:
            shown = constants.get(value.id, value) if isinstance(value, ast.Name) else value
            yield from (
                text.value
                for text in ast.walk(shown)
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and len(text.value) > 12
            )


def test_each_remedy_in_the_program_is_followed_by_a_test() -> None:
    followed = [str(case.values[0]) for case in CASES]
    followed += [
        text.value
        for path in ELSEWHERE
        for text in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and len(text.value) > 20
    ]
    pieces = {piece for path in (ROOT / "reconciler").rglob("*.py") for piece in _pieces(path)}

    assert len(pieces) > 25
    assert {
        piece for piece in pieces if not any(piece.strip() in text or text in piece for text in followed)
    } == set()
