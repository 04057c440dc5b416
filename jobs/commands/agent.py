"""`reconciler agent` on the command line; in the DaemonSet, `jobs/__main__.py` starts the agent directly."""

from __future__ import annotations

import click

from jobs.agent.program import main


@click.command("agent", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Publish the scheduled events of this node's VM, for a DaemonSet.

    See docs/agent.md for its options.
    """
    return main(list(arguments))
