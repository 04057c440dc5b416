"""The command of the node agent, for a look by hand: its DaemonSet starts the module, which loads less."""

from __future__ import annotations

import click


@click.command("agent", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def agent(arguments: tuple[str, ...]) -> int:
    """Publish the scheduled events of this node's VM.

    It is for a DaemonSet; docs/agent.md has its options.
    """
    from reconciler.sources.imds.agent.program import main

    return main(list(arguments))
