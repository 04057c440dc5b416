"""`reconciler resume`: end the hold and the deferral of nodes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import click

from jobs.runtime.instructing import CommonOptions, InstructionPlan, Scene, carry_out, on_nodes
from reconciler.kubernetes.cluster import Cluster
from reconciler.model.errors import Forbidden, Rejected, Unauthorized
from reconciler.model.instructions import Ended, PersonHold, Word
from reconciler.passes import instruct


@click.command("resume")
@on_nodes
def command(given: CommonOptions) -> int:
    """End the hold and the deferral of nodes, whoever gave them.

    --all and --pool end only what was given with the same option.
    """

    def asked(scene: Scene) -> InstructionPlan:
        scope, prefix, now, who = given.chosen.scope, scene.prefix, scene.now, scene.who
        if not scope:
            holds: tuple[PersonHold, ...] = ()
            # Whoever may resume nodes need not have access to the ledger.
            with suppress(Forbidden, Unauthorized, Rejected):
                holds = Cluster(scene.connection, namespace=scene.target.namespace).ledger().holds
            resumed = partial(instruct.resumed, prefix=prefix, now=now, who=who, fleet=holds)
            return InstructionPlan(resumed, word=Word())
        done, over = _resume_many(scope, scene)
        resumed = partial(instruct.resumed_with_many, prefix=prefix, now=now, who=who, scope=scope, held=over)
        return InstructionPlan(resumed, done, changed=bool(over), word=Word())

    return carry_out(given, asked, "MaintenanceResumed")


def _resume_many(scope: str, scene: Scene) -> tuple[str, tuple[PersonHold, ...]]:
    """End the hold of all nodes, or of a pool; return in words what was done, and the holds that ended."""
    from reconciler.kubernetes.ledger import change_holds

    def change(before: tuple[PersonHold, ...]) -> tuple[PersonHold, ...]:
        return tuple(hold for hold in before if hold.word.scope != scope)

    def ends(hold: PersonHold) -> Ended:
        return Ended("resumed", scene.who, scene.now.replace(microsecond=0), "held", hold.word)

    before = change_holds(scene.connection, scene.target.namespace, change, ends)
    ended = [hold for hold in before if not hold.word.ended(scene.now)]
    over = tuple(hold for hold in ended if hold.word.scope == scope)
    done = (f"resumed: ended the hold {hold.word}" for hold in over)
    return "; ".join((*done, *(hold.words("") for hold in ended if hold.word.scope != scope))), over
