"""`reconciler explain`: what happens to one node or one pod, why, and who can change it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click

from jobs import options
from jobs.completion import values
from jobs.runtime.by_hand import whole_names
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import Shown, show
from jobs.runtime.output import in_form, width
from jobs.runtime.outside import examined
from jobs.runtime.process import AskedPod, options_of_features, processes
from jobs.runtime.settings_source import SettingsSource, settings_to_show
from reconciler.calendar.values import near
from reconciler.kubernetes.events import events_of_pod
from reconciler.model.errors import ClusterError, Forbidden, NotFound, Unauthorized
from reconciler.model.explanation import Examination, KnownMove, NodeExplanation, PodPast, SeenEvent
from reconciler.model.limits import is_object_name, quoted
from reconciler.model.plan import Plan, PlanSettings
from reconciler.model.problems import PODS
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.explain import explain_node, explain_pod, find_pod, past_of
from reconciler.report.explained import Explanation, as_text
from reconciler.settings.schema import Settings


@click.command("explain")
@click.argument("name", metavar="NODE|NAMESPACE/POD", shell_complete=values.nodes_and_pods)
@options.optional_config
@options.cluster
@options.namespace
@options.output
@options.watch
@options_of_features("explain")
def command(
    name: str,
    config: SettingsSource | None,
    target: Target,
    namespace: str | None,
    output: str,
    every: timedelta | None,
    given: Mapping[str, Any],
) -> int:
    """Print what happens to one node or pod, why, and who can change it.

    Of a node: how much time is left, what blocks it, a command for each remedy, and what happens if nobody
    acts; -o wide also has each check. A pod is NAMESPACE/POD, or a name with -n; of one that is gone, it
    prints how it was moved, and what runs instead. The end of a node's name is enough if one node has it,
    such as 000001. It only reads the cluster.
    """
    if namespace is not None:
        if "/" in name and name.partition("/")[0] != namespace:
            raise click.UsageError(f"{name} names another namespace than -n {namespace}")
        name = name if "/" in name else f"{namespace}/{name}"
    of_pods = [key for key, value in given.items() if value]
    if of_pods and "/" not in name:
        raise click.UsageError(f"--{of_pods[0]} is about a pod; write NAMESPACE/POD, or name it with -n")

    def look() -> Shown:
        policy = settings_to_show(config, target, datetime.now(UTC))
        explanation = _explained(name, policy.settings, target, given)
        if explanation.pod is None and explanation.past is not None and every is not None:
            # A watch ends with what it watches.
            raise NotFound(f"{name}: there is no such pod", status=404)
        document = policy.named_in(explanation.document)
        form = partial(as_text, explanation, wide=output == "wide")
        plan = explanation.plan
        first = policy.first_lines(output, plan.reconciler, plan.now)
        text = in_form(document, output, form, width(output))
        return Shown(text, output, document, first, policy.exit_code)

    return show(look, every)


def _explained(name: str, settings: Settings, target: Target, given: Mapping[str, Any]) -> Explanation:
    namespace, slash, pod_name = name.rpartition("/")
    if slash and not (is_object_name(namespace) and is_object_name(pod_name)):
        raise NotFound(f"{quoted(name)} is no pod; write NAMESPACE/POD", status=404)
    with connected(target) as connection:
        if not slash:
            examination = examined(connection, target, settings, with_preview=True, also_pods=True)
            (node,) = whole_names([name], {node.name for node in examination.snapshot.nodes})
            return Explanation(examination.plan, _node(node, examination, settings))
        moves, unread = _moves(AskedPod(connection, target, namespace, pod_name, given))
        try:
            examination = examined(connection, target, settings, with_preview=True, namespace=namespace)
        except Unauthorized as error:
            if not moves:
                raise
            # Whoever may read one namespace only still gets what is known of the pod there.
            instead = f"what runs instead is not known: {error.because}"
            past = PodPast(name, moves=moves, unread=(*unread, instead))
            known_of = PlanSettings(settings.version, settings.time_zone.key)
            return Explanation(
                Plan(datetime.now(UTC), settings.mode.value, settings=known_of), None, past=past
            )
        if (refused := examination.snapshot.problems.refused.get(PODS)) is not None:
            raise Forbidden(f"{quoted(name)} can't be explained: needs {refused.needs}", needs=refused.needs)
        events: tuple[SeenEvent, ...] = ()
        unseen = ""
        try:
            events = events_of_pod(connection, namespace, pod_name)
        except ClusterError as error:
            unseen = error.because

    snapshot = examination.snapshot
    past = past_of(examination, namespace, pod_name, events, unseen)
    past = replace(past, moves=moves, unread=unread)
    pod = find_pod(snapshot, namespace, pod_name)
    if pod is not None:
        of_node = _node(pod.node, examination, settings) if pod.node else None
        return Explanation(examination.plan, of_node, explain_pod(pod, of_node, snapshot), past)
    if past.events or past.successors or past.moves:
        return Explanation(examination.plan, None, past=past)
    known = [each.name for pods in snapshot.pods.values() for each in pods if each.namespace == namespace]
    message = f"{name}: there is no such pod{near(pod_name, sorted(known))}"
    raise NotFound(". ".join((message, *unread)), status=404)


def _moves(asked: AskedPod) -> tuple[tuple[KnownMove, ...], tuple[str, ...]]:
    """Return what features keep of how the pod was moved, the newest first, and what could not be read."""
    answers = [process.moves(asked) for process in processes() if process.moves]
    moves = sorted((move for known, _ in answers for move in known), key=lambda move: move.at, reverse=True)
    return tuple(moves), tuple(problem for _, problems in answers for problem in problems)


def _node(name: str, examination: Examination, settings: Settings) -> NodeExplanation | None:
    node = next((node for node in examination.snapshot.nodes if node.name == name), None)
    if node is None:
        # The node of a pod can be gone while the pod still exists.
        return None
    now = examination.plan.now
    return explain_node(node, examination, assess(examination.snapshot, now).of(name), settings, now)
