"""The command line. A command's file is imported when it is called: none pays for the others' start."""

from __future__ import annotations

import sys
from importlib import import_module
from types import MappingProxyType

import click

from reconciler import __version__
from reconciler.errors import ReconcilerError

COMMANDS = MappingProxyType(
    {
        "agent": "Publish what IMDS tells of this node's VM; a DaemonSet runs it.",
        "check-config": "Say every mistake of a settings file at once, "
        "or what will happen to each kind of event.",
        "demo": "A day of a simulated AKS cluster, in seconds.",
        "drain": "Cordon and drain nodes by hand; kubectl drain's flags mean the same here.",
        "release": "Undo what is ours on nodes: uncordon, and take label and record away.",
        "report": "What a pass would do, and why, with each drain previewed; writes nothing to the cluster.",
        "schema": "Print the JSON Schema of the settings file, for editors.",
        "serve": "Passes without end, as a Deployment runs them: "
        "on a schedule, and at once when a node changes.",
        "sweep": "One pass over all nodes, as a CronJob runs it.",
        "windows": "Say whether a drain may start at a moment, why, and when windows open next.",
    }
)
"""Every command with its line in `reconciler --help`.

`check-config` is `command` in jobs/commands/check_config.py, and so on: a line here and a file there make a
command.
"""


class _Commands(click.Group):
    """A group that imports a command only to run it, or to print its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command from its file, None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"jobs.commands.{cmd_name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="reconciler")
def commands() -> None:
    """Keeps workloads out of the way of platform maintenance on Kubernetes nodes.

    Exit codes: 0 done, held nodes and a lock held by another pass included; 1 something failed for some
    nodes, the rest was done; 2 the settings or the arguments are wrong; 3 the API server or the credentials.
    """


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
