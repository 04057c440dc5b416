"""`reconciler completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click

from jobs.completion.protocol import FOR_KUBECTL, SHELLS, script
from jobs.program import OWN_NAME, called


@click.command("completion")
@click.argument("shell", type=click.Choice([*SHELLS, "kubectl"]))
def command(shell: str) -> int:
    """Print what completes commands in bash, zsh or fish, or in kubectl.

    Load it in the start file of the shell; for kubectl, save it as kubectl_complete-maintenance in PATH.
    """
    if shell != "kubectl" and called() != OWN_NAME:
        message = "kubectl completes its plugins itself; write `kubectl maintenance completion kubectl`"
        raise click.UsageError(message)
    click.echo(FOR_KUBECTL if shell == "kubectl" else script(shell), nl=False)
    return 0
