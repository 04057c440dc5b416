"""`reconciler explain`: what happens to one node or one pod, why, and who can change it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import click

from jobs import options
from jobs.completion import values
from jobs.runtime.by_hand import whole_names
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import Shown, show
from jobs.runtime.output import in_form, width
from jobs.runtime.outside import examined
from jobs.runtime.settings_source import SettingsSource, settings_to_show
from reconciler.calendar.values import near
from reconciler.kubernetes.events import events_of_pod
from reconciler.model.errors import ClusterError, Forbidden, NotFound
from reconciler.model.explanation import Examination, NodeExplanation, SeenEvent
from reconciler.model.limits import is_object_name, quoted
from reconciler.model.problems import PODS
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
def command(
    name: str,
    config: SettingsSource | None,
    target: Target,
    namespace: str | None,
    output: str,
    every: timedelta | None,
) -> int:
    """Print what happens to one node or pod, why, and who can change it.

    Of a node: how much time is left, what blocks it, a command for each remedy, and what happens if nobody
    acts; -o wide also has each check. A pod is NAMESPACE/POD, or a name with -n. The end of a node's name is
    enough if one node has it, such as 000001. It only reads the cluster.
    """
    if namespace is not None:
        if "/" in name and name.partition("/")[0] != namespace:
            raise click.UsageError(f"{name} names another namespace than -n {namespace}")
        name = name if "/" in name else f"{namespace}/{name}"
    return explain(name, config, target, output=output, every=every)


def explain(
    name: str, config: SettingsSource | None, target: Target, *, output: str, every: timedelta | None
) -> int:
    """Print the explanation, again after each pause of `every` (None: once); the cluster is only read.

    Raises NotFound for a name that does not exist.
    """

    def look() -> Shown:
        policy = settings_to_show(config, target, datetime.now(UTC))
        explanation = _explained(name, policy.settings, target)
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


def _explained(name: str, settings: Settings, target: Target) -> Explanation:
    namespace, slash, pod_name = name.rpartition("/")
    if slash and not (is_object_name(namespace) and is_object_name(pod_name)):
        raise NotFound(f"{quoted(name)} is no pod; write NAMESPACE/POD", status=404)
    with connected(target) as connection:
        if not slash:
            examination = examined(connection, target, settings, with_preview=True, also_pods=True)
            (node,) = whole_names([name], {node.name for node in examination.snapshot.nodes})
            return Explanation(examination.plan, _node(node, examination, settings))
        examination = examined(connection, target, settings, with_preview=True, namespace=namespace)
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
    pod = find_pod(snapshot, namespace, pod_name)
    if pod is not None:
        of_node = _node(pod.node, examination, settings) if pod.node else None
        return Explanation(examination.plan, of_node, explain_pod(pod, of_node, snapshot), past)
    if past.events or past.successors:
        return Explanation(examination.plan, None, past=past)
    known = [each.name for pods in snapshot.pods.values() for each in pods if each.namespace == namespace]
    raise NotFound(f"{name}: there is no such pod{near(pod_name, sorted(known))}", status=404)


def _node(name: str, examination: Examination, settings: Settings) -> NodeExplanation | None:
    node = next((node for node in examination.snapshot.nodes if node.name == name), None)
    if node is None:
        # The node of a pod can be gone while the pod still exists.
        return None
    now = examination.plan.now
    return explain_node(node, examination, assess(examination.snapshot, now).of(name), settings, now)
