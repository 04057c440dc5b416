"""Options that commands share, and types of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jobs.completion import values
from jobs.runtime.environment import Target
from reconciler.calendar.values import parse_duration
from reconciler.model.content import PREFIX, ConfigMapName, parse_config_map
from reconciler.model.selector import parse_selector_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Value = TypeVar("Value")
Command = Callable[..., int]
Option = Callable[[Command], Command]
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]

SETTINGS_FILE = click.Path(dir_okay=False, path_type=Path)

nodes = click.argument("nodes", nargs=-1, shell_complete=values.nodes)
"""The names of nodes, none if none are given."""


def as_one(name: str, make: Callable[..., object], *options: Option) -> Option:
    """Return a decorator that adds options and passes them to the command as one value.

    `make` has one parameter per option. The command gets its result as the argument `name`.
    """
    keys = tuple(inspect.signature(make).parameters)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_value(**given: Any) -> int:
            value = make(**{key: given.pop(key) for key in keys})
            return command(**given, **{name: value})

        decorated: Command = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


class _Parsed(click.ParamType[Value]):
    """A type of values that a function parses; a text that it refuses with ValueError is a usage error.

    What is no text is a value already.
    """

    def __init__(self, name: str, parse: Callable[[str], Value], complete: Complete | None = None) -> None:
        """`complete` returns what completes a text."""
        self.name, self._parse, self._complete = name, parse, complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        """Return the value."""
        if not isinstance(value, str):
            parsed: Value = value
            return parsed
        try:
            return self._parse(value)
        except ValueError as error:
            named = param.opts[-1] if isinstance(param, click.Option) else None
            raise click.BadParameter(str(error), param=param, param_hint=named) from error

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Let the shell complete it."""
        return self._complete(ctx, param, incomplete) if self._complete is not None else []


def _address(text: str) -> tuple[str, int]:
    """Return host and port. An empty host means all addresses, a port alone this machine only."""
    host, colon, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} has no port; write :8080 for all addresses, 8080 for this machine only")
    if not colon:
        return "127.0.0.1", int(port)
    return host.strip("[]"), int(port)


def _url(text: str) -> str:
    """Return the URL of a server to which something is sent, which is no link-local address."""
    from reconciler.settings.fields import check_url

    try:
        check_url(text)
    except ValueError as error:
        raise ValueError(f"it {error}") from error
    return text


def _settings_source(text: str) -> Path | ConfigMapName:
    named = parse_config_map(text)
    return named if named is not None else Path(SETTINGS_FILE.convert(text, None, None))


def _destination(text: str) -> Path | ConfigMapName | str:
    """Return where the text says that a report goes. ValueError for a text that says nothing usable."""
    from reconciler.settings.fields import check_url

    if text.startswith(("https://", "http://")):
        try:
            check_url(text)
        except ValueError as error:
            # It may have a secret, so the text itself is not repeated.
            raise ValueError(f"the address {error}") from error
        return text
    named = parse_config_map(text)
    if named is not None:
        return named
    path = Path(text)
    if not text or path.is_dir():
        raise ValueError("it is empty or a folder; name a file, or leave it out to print")
    return path


SOURCE_NAME = "FILE|configmap/NAMESPACE/NAME"

DURATION = _Parsed("duration", parse_duration)
SELECTOR = _Parsed("selector", lambda text: parse_selector_text(text) if text else None)
ADDRESS = _Parsed("address", _address)
URL = _Parsed("url", _url)
DESTINATION = _Parsed("destination", _destination, values.files)
SETTINGS_SOURCE = _Parsed("settings", _settings_source, values.files)


def _a_file(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    """Return the path. The name of a ConfigMap is a usage error."""
    if str(value).startswith(PREFIX) and not value.exists():
        message = "this command watches a file for changes; mount the ConfigMap, and name the file"
        raise click.BadParameter(message, ctx, param)
    return value


config = click.option(
    "--config",
    type=SETTINGS_FILE,
    callback=_a_file,
    required=True,
    help="The settings file. `reconciler check-config FILE` explains it.",
)

config_source = click.option(
    "--config",
    type=SETTINGS_SOURCE,
    metavar=SOURCE_NAME,
    required=True,
    help="The settings: a file, or configmap/NAMESPACE/NAME. `reconciler check-config` explains them.",
)

optional_config = click.option(
    "--config",
    type=SETTINGS_SOURCE,
    metavar=SOURCE_NAME,
    help="The settings: a file, or configmap/NAMESPACE/NAME.  [default: those that are installed in the "
    "cluster]",
)


selector = click.option("-l", "--selector", type=SELECTOR, help="The nodes with these labels, as in kubectl.")
pool = click.option("--pool", shell_complete=values.pools, help="The nodes of this pool.")


def _every(watch: bool, every: timedelta) -> timedelta | None:
    """Return the pause between two looks, None for one look; less than a second is a usage error."""
    if every < timedelta(seconds=1):
        raise click.UsageError("--every: write 1s or more")
    return every if watch else None


watch = as_one(
    "every",
    _every,
    click.option(
        "-w", "--watch", is_flag=True, help="Print again when something changes, in place on a terminal."
    ),
    click.option(
        "--every",
        type=DURATION,
        default="10s",
        show_default=True,
        help="With --watch: the pause between two looks at the cluster.",
    ),
)
"""The pause between two looks, as the argument `every`, None to look once."""


def output_as(*forms: str) -> Option:
    """Return the option for the form of the output, with these forms beside those of every command."""
    return click.option(
        "-o",
        "--output",
        "output",
        type=click.Choice(["text", "wide", "json", "yaml", *forms]),
        default="text",
        show_default=True,
        help="The format of the output. wide: text with long lines and more rows.",
    )


output = output_as()
"""The form of the output of a command that has a text and a document, as the argument `output`."""

prefix = click.option(
    "--prefix", help="The keys.prefix of the settings.  [default: that of the settings in the cluster]"
)

_kubeconfig = click.option(
    "--kubeconfig",
    shell_complete=values.files,
    help="The kubeconfig file.  [default: $KUBECONFIG, in-cluster, ~/.kube/config]",
)
_context = click.option(
    "--context",
    shell_complete=values.contexts,
    help="The context in the kubeconfig.  [default: the current one]",
)


def _target(kubeconfig: str | None, context: str | None, reconciler_namespace: str) -> Target:
    return Target(kubeconfig, context, reconciler_namespace)


def _cluster(of: str, *names: str) -> Option:
    return as_one(
        "target",
        _target,
        _kubeconfig,
        _context,
        click.option(
            "--reconciler-namespace",
            *names,
            shell_complete=values.namespaces,
            envvar="RECONCILER_NAMESPACE",
            default="node-maintenance",
            help=f"The namespace {of}.  [default: $RECONCILER_NAMESPACE, else node-maintenance]",
        ),
    )


cluster = _cluster("of the reconciler: of its lock, ledger and settings")
"""The options for the cluster, as the argument `target`."""

own_cluster = _cluster("in which serve and sweep run, with their lock, ledger and settings", "--namespace")
"""The same for the reconciler itself: it chooses no workloads, so `--namespace` can only mean its own."""

namespace = click.option(
    "-n",
    "--namespace",
    shell_complete=values.namespaces,
    help="Only the pods of this namespace, and the nodes that run them.  [default: all namespaces]",
)
"""The namespace of workloads, None for all of them."""
