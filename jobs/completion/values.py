"""Which values complete an argument: names from the cluster and the kubeconfig.

The options of every command import this file, so it imports what it needs only while a person completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from jobs.runtime.environment import Target

Items = list["CompletionItem[str]"]


def nodes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the names of nodes, without those that are typed already."""
    from jobs.completion.cluster_names import node_names

    typed = ctx.params.get(param.name or "")
    already = typed if isinstance(typed, tuple) else ()
    return _items((name for name in node_names(_target(ctx)) if name not in already), incomplete)


def nodes_and_pods(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return the names of nodes, or of pods as NAMESPACE/POD; with -n those of the pods there."""
    from jobs.completion.cluster_names import pod_names

    given = ctx.params.get("namespace")
    if given and "/" not in incomplete:
        return _items(pod_names(_target(ctx), given), incomplete)
    namespace, slash, _ = incomplete.partition("/")
    if not slash:
        return nodes(ctx, param, incomplete)
    return _items((f"{namespace}/{name}" for name in pod_names(_target(ctx), namespace)), incomplete)


def _names_of(what: str) -> Callable[[click.Context, click.Parameter, str], Items]:
    """Return what completes with the names that a function of `cluster_names` returns."""

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        from jobs.completion import cluster_names

        return _items(getattr(cluster_names, what)(_target(ctx)), incomplete)

    return names


pools = _names_of("pool_names")
namespaces = _names_of("namespace_names")
contexts = _names_of("context_names")


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Return what makes the shell complete a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def _target(ctx: click.Context) -> Target:
    from jobs.runtime.environment import Target

    return Target(ctx.params.get("kubeconfig"), ctx.params.get("context"))


def _items(names: Iterable[str], incomplete: str) -> Items:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]
