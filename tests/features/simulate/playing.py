"""A scenario played with the program's own passes."""

from __future__ import annotations

from functools import partial

from reconciler.features.simulate.play import play as play_with
from reconciler.run import PARTS, run_pass

play = partial(play_with, run_pass=run_pass, parts=PARTS)
