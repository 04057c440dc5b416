"""The command line. Each command imports its own job, so that none pays for the others' start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler import __version__
from reconciler.errors import ReconcilerError
from reconciler.model.keys import DEFAULT_PREFIX

if TYPE_CHECKING:
    from reconciler.model.selector import LabelSelector

SETTINGS_FILE = click.Path(dir_okay=False, path_type=Path)

_config = click.option(
    "--config",
    type=SETTINGS_FILE,
    required=True,
    help="The settings file. reconciler check-config FILE explains it.",
)


def _cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that point a command at a cluster."""
    for option in (
        click.option(
            "--namespace",
            default="node-maintenance",
            show_default=True,
            help="Where the lock and the ledger live; the same for everything that acts on one cluster.",
        ),
        click.option("--context", help="The kubeconfig's context.  [default: its current one]"),
        click.option(
            "--kubeconfig",
            help="The kubeconfig file.  [default: $KUBECONFIG, in-cluster, ~/.kube/config]",
        ),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="reconciler")
def commands() -> None:
    """Keeps workloads out of the way of platform maintenance on Kubernetes nodes.

    Exit codes: 0 done, held nodes and a lock held by another pass included; 1 something failed for some
    nodes, the rest was done; 2 the settings or the arguments are wrong; 3 the API server or the credentials.
    """


@commands.command()
@_config
@_cluster
@click.option("--dry-run", is_flag=True, help="Write nothing, take no lock, and say what would be done.")
@click.option(
    "--for",
    "for_",
    default="50s",
    show_default=True,
    help="How long drains may go on before the pass ends; the next one resumes them.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def sweep(
    config: Path,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    dry_run: bool,
    for_: str,
    output: str,
) -> int:
    """One pass over all nodes, as a CronJob runs it."""
    from jobs.commands.sweep import sweep as job
    from jobs.runtime.environment import Target

    target = Target(kubeconfig, context, namespace)
    return job(config, target, dry_run=dry_run, patience=_duration("--for", for_), output=output)


@commands.command()
@_config
@_cluster
@click.option("--listen", default=None, help="Serve /healthz and /readyz here, as :8080 or 127.0.0.1:8080.")
@click.option("--every", default="30s", show_default=True, help="A pass at least so often.")
def serve(
    config: Path,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    listen: str | None,
    every: str,
) -> int:
    """Passes without end, as a Deployment runs them: on a schedule, and at once when a node changes."""
    from jobs.commands.serve import serve as job
    from jobs.runtime.environment import Target

    target = Target(kubeconfig, context, namespace)
    return job(config, target, listen=_address(listen), every=_duration("--every", every))


@commands.command()
@_config
@_cluster
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it here.  [default: stdout]"
)
def report(
    config: Path,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    format_: str,
    out: Path | None,
) -> int:
    """What a pass would do, and why, with each drain previewed; writes nothing to the cluster."""
    from jobs.commands.report import report as job
    from jobs.runtime.environment import Target

    return job(config, Target(kubeconfig, context, namespace), form=format_, out=out)


@commands.command()
@click.argument("nodes", nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="Every node that has anything of ours: the uninstall."
)
@click.option("--reset", is_flag=True, help="Take away a record that can't be read, too.")
@click.option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="The settings' keys.prefix.")
@_cluster
def release(
    nodes: tuple[str, ...],
    everything: bool,
    reset: bool,
    prefix: str,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> int:
    """Undo what is ours on nodes: uncordon, and take label and record away."""
    from jobs.commands.release import release as job
    from jobs.runtime.environment import Target

    if bool(nodes) == everything:
        raise click.UsageError("name the nodes, or say --all")
    return job(nodes, Target(kubeconfig, context, namespace), reset=reset, prefix=prefix)


@commands.command()
@click.argument("nodes", nargs=-1)
@click.option("-l", "--selector", help="The nodes by their labels, instead of by name.")
@click.option("--ignore-daemonsets", is_flag=True, help="Leave DaemonSets' pods where they are.")
@click.option("--delete-emptydir-data", is_flag=True, help="Evict pods with an emptyDir; its data is lost.")
@click.option("--force", is_flag=True, help="Evict pods that no controller would create again.")
@click.option(
    "--grace-period",
    type=int,
    default=-1,
    show_default=True,
    help="Seconds, in place of each pod's own; -1: own.",
)
@click.option("--pod-selector", help="Only pods with these labels go.")
@click.option("--disable-eviction", is_flag=True, help="Delete, which asks no PodDisruptionBudget.")
@click.option(
    "--skip-wait-for-delete-timeout",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Don't wait for pods whose deletion is older than so many seconds; 0: do.",
)
@click.option("--timeout", default="0s", show_default=True, help="For each node; 0s: without end.")
@click.option("--dry-run", is_flag=True, help="Say of every pod what would happen to it; write nothing.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="The settings' keys.prefix.")
@_cluster
def drain(
    nodes: tuple[str, ...],
    selector: str | None,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    force: bool,
    grace_period: int,
    pod_selector: str | None,
    disable_eviction: bool,
    skip_wait_for_delete_timeout: int,
    timeout: str,
    dry_run: bool,
    output: str,
    prefix: str,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> int:
    """Cordon and drain nodes by hand; kubectl drain's flags mean the same here.

    Ctrl-C leaves the nodes cordoned: the same command goes on, reconciler release undoes it.
    """
    from datetime import timedelta

    from jobs.commands.drain import Asked
    from jobs.commands.drain import drain as job
    from jobs.runtime.environment import Target
    from reconciler.model.drains import DrainOptions

    if bool(nodes) == bool(selector):
        raise click.UsageError("name the nodes, or give --selector")
    patience = _duration("--timeout", timeout)
    asked = Asked(
        names=nodes,
        selector=_selector("--selector", selector),
        options=DrainOptions(
            ignore_daemonsets=ignore_daemonsets,
            evict_empty_dir=delete_emptydir_data,
            evict_unmanaged=force,
            strict=True,
            grace=grace_period if grace_period >= 0 else None,
            skip_terminating_after=timedelta(seconds=skip_wait_for_delete_timeout)
            if skip_wait_for_delete_timeout
            else None,
            pod_selector=_selector("--pod-selector", pod_selector),
            use_delete=disable_eviction,
            prefix=prefix,
        ),
        timeout=timedelta(seconds=patience) if patience else None,
        dry_run=dry_run,
        output=output,
    )
    return job(asked, Target(kubeconfig, context, namespace))


@commands.command("check-config")
@click.argument("file", type=SETTINGS_FILE)
def check_config(file: Path) -> int:
    """Say every mistake of a settings file at once, or what will happen to each kind of event."""
    from reconciler.settings.explain import explain_settings
    from reconciler.settings.load import load_settings

    click.echo(explain_settings(load_settings(file), str(file)), nl=False)
    return 0


@commands.command()
def schema() -> int:
    """Print the JSON Schema of the settings file, for editors."""
    import json

    from reconciler.settings.jsonschema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
    return 0


@commands.command()
@click.argument("file", type=SETTINGS_FILE)
@click.option("--at", help="A moment, in the settings' zone where it names none.  [default: now]")
@click.option(
    "--label", "labels", multiple=True, help="key=value of the node in question; again for more of them."
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def windows(file: Path, at: str | None, labels: tuple[str, ...], output: str) -> int:
    """Say whether a drain may start at a moment, why, and when windows open next."""
    from jobs.commands.windows import windows as job

    return job(file, at=at, labels=labels, output=output)


@commands.command()
def demo() -> int:
    """A day of a simulated AKS cluster, in seconds."""
    from jobs.commands.demo import run

    return run()


@commands.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def agent(arguments: tuple[str, ...]) -> int:
    """Publish what IMDS tells of this node's VM; a DaemonSet runs it."""
    from jobs.agent.program import main as job

    return job(list(arguments))


def _selector(option: str, text: str | None) -> LabelSelector | None:
    from reconciler.model.selector_text import parse_selector_text

    if not text:
        return None
    try:
        return parse_selector_text(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _duration(option: str, text: str) -> float:
    from reconciler.calendar.values import parse_duration

    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} has no port; write :8080", param_hint="--listen")
    return host.strip("[]"), int(port)


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; what we raise on purpose becomes a line on stderr."""
    try:
        return int(commands.main(arguments, prog_name="reconciler", standalone_mode=False) or 0)
    except ReconcilerError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130


if __name__ == "__main__":
    sys.exit(main())
