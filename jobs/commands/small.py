"""Small commands: `reconciler completion` and `schema`."""

from __future__ import annotations

import click

from jobs.commands import OWN_NAME, called
from jobs.completion.protocol import FOR_KUBECTL, SHELLS, script
from jobs.runtime.output import print_text


@click.command("completion")
@click.argument("shell", type=click.Choice([*SHELLS, "kubectl"]))
def completion(shell: str) -> int:
    """Print what completes commands in bash, zsh, fish or kubectl.

    Load it in the start file of the shell; for kubectl, save it as kubectl_complete-maintenance in PATH.
    """
    if shell != "kubectl" and called() != OWN_NAME:
        message = "kubectl completes its plugins itself; write `kubectl maintenance completion kubectl`"
        raise click.UsageError(message)
    print_text(FOR_KUBECTL if shell == "kubectl" else script(shell), nl=False)
    return 0


@click.command("schema")
def schema() -> int:
    """Print the JSON Schema of the settings file, for editors."""
    import json

    from reconciler.settings.reference import json_schema

    print_text(json.dumps(json_schema(), indent=2))
    return 0
