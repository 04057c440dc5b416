"""The command line. Only the file of the called command is imported, so that each starts quickly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile
from shlex import join
from typing import TYPE_CHECKING

import click

from jobs.commands import COMMANDS, SYNONYMS, called, in_own_words, is_completer, load
from reconciler import __commit__, __version__, plugins
from reconciler.model.errors import ReconcilerError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_ANY = ("NODE", "FILE", "--all")
"""Words of a command for which the names stand that a person has typed."""

_LIKE = 0.7
"""How like a command a name has to be: `reject` is like `request` only by its letters."""

_OPTIONS = {
    "--until": ("--for", "--duration", "--till", "--end"),
    "--not-before": ("--at", "--start", "--when"),
    "--reason": ("--message", "--because", "--comment", "--why"),
    "--now": ("--stop", "--immediately", "--force"),
    "--pool": ("--agentpool", "--nodepool", "--node-pool", "--nodegroup"),
    "--selector": ("--label", "--labels", "--nodes"),
    "--all": ("--all-nodes", "--everything", "--fleet"),
    "--output": ("--format", "--json", "--yaml"),
    "--watch": ("--follow", "-f"),
    "--namespace": ("--ns",),
    # A command without pods to choose: who types it looks for the reconciler.
    "--reconciler-namespace": ("-n", "--namespace", "--ns"),
    "--context": ("--cluster",),
    "--config": ("--settings", "--policy", "--file", "-f"),
    "--cancel": ("--delete", "--remove", "--undo", "--revoke"),
}
"""Options with the names that people try instead of them."""


class _Help(click.HelpFormatter):
    """Writes the help with the name by which the program was called."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(in_own_words(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of names and what they mean."""
        named = [(name, in_own_words(text)) for name, text in rows]
        super().write_dl(named, col_max, col_spacing)


class _Commands(click.Group):
    """A group that imports a command only to run it or to print its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command from its file, or None for an unknown name."""
        return load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; an unknown name is an error that helps."""
        name, rest = args[0], args[1:]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        names = list(takewhile(lambda word: not word.startswith("-"), rest))
        if name == "help":
            meant = [*names[:1], "--help"]
        elif name in SYNONYMS:
            # Whoever names a node wants to stop its drain, and not all of them.
            words = SYNONYMS[name].split()
            meant = [each for word in words for each in (names if names and word in _ANY else [word])]
        else:
            similar = get_close_matches(name, COMMANDS, n=1, cutoff=_LIKE)
            meant = [*similar, *rest] if similar else []
        instead = f"did you mean `{called()} {join(meant)}`?" if meant else f"`{called()} --help` lists all."
        raise click.UsageError(f"There is no command {name!r}; {instead}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the commands and options that begin so, without importing a command."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=said.text)
            for name, said in sorted(COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        for group in (plugins.SEE, plugins.PLAN, plugins.ACT, plugins.SET_UP):
            named = {name: said for name, said in sorted(COMMANDS.items()) if said.group == group}
            with formatter.section(group):
                formatter.write_dl([(name, said.text) for name, said in named.items()])
                for said in named.values():
                    if said.answers:
                        formatter.write_paragraph()
                        formatter.write_text(f"{said.answers} `reconciler {said.example}`")


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version. click's own option keeps the first name by which a process calls it."""
    if wanted and not ctx.resilient_parsing:
        commit = __commit__ or "unknown: only images and the packages of a release name theirs"
        click.echo(f"{called()}, version {__version__}, commit {commit}")
        ctx.exit()


@click.group(
    epilog="Begin with `reconciler plan` for all nodes, and `reconciler explain NODE` for one.",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and the commit, and exit.",
)
def commands() -> None:
    """Drain Kubernetes nodes before the platform's maintenance, and uncordon them after it.

    Exit codes: 0 success, also if nodes are held or another pass holds the lock; 1 something failed for some
    nodes, the rest is done; 2 the settings or the arguments are invalid; 3 the API server can't be reached,
    or refuses the credentials.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Expected errors become a line on stderr."""
    # Each command makes a context of its own, and all of them take the formatter from the class.
    click.Context.formatter_class = _Help
    arguments = sys.argv[1:] if arguments is None else arguments
    instruction = os.environ.get("_RECONCILER_COMPLETE")
    if instruction is not None or arguments[:1] == ["__complete"] or is_completer():
        return _complete(instruction, arguments)
    try:
        return int(commands.main(arguments, prog_name=called(), standalone_mode=False) or 0)
    except ReconcilerError as error:
        from jobs.runtime.output import echo_folded

        echo_folded(str(error), err=True)
        return error.exit_code
    except click.NoSuchOption as error:
        click.UsageError(_no_option(error), error.ctx).show()
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130


def _no_option(error: click.NoSuchOption) -> str:
    """Return in words that the command has no such option, with the one that is meant."""
    name, known = error.option_name, set[str]()
    if error.ctx is not None:
        known |= {option for param in error.ctx.command.params for option in param.opts}
    meant = [option for option, names in _OPTIONS.items() if name in names and option in known]
    meant += error.possibilities or ()
    return f"There is no option {name!r}" + (f"; did you mean `{meant[0]}`?" if meant else "")


def _complete(instruction: str | None, arguments: list[str]) -> int:
    """Answer a shell, or kubectl if there is no instruction."""
    from jobs.completion.protocol import answer_kubectl, answer_shell

    if instruction is not None:
        click.echo(answer_shell(commands, instruction), nl=False)
    else:
        words = arguments[1:] if arguments[:1] == ["__complete"] else arguments
        click.echo(answer_kubectl(commands, words), nl=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
