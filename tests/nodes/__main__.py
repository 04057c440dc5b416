"""Plays scenarios on real nodes, and prints what was seen; the exit code is 1 if one of them failed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.nodes import images, plugin, requirements, session, supervision
from tests.nodes.scenarios import SCENARIOS, rollout
from tests.support.controlplane.binaries import NoControlPlane, find_binaries, find_node_binaries
from tests.support.tools.building import NoTool, find_tool

CANNOT_RUN = 2
"""The exit code where the machine lacks something."""


def main() -> int:
    """Check the machine, prepare what needs the outside, and run the session apart from it."""
    parser = argparse.ArgumentParser(prog="python -m tests.nodes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(SCENARIOS)}")
    parser.add_argument("--keep", type=Path, default=Path("build/nodes"), help="logs, if a scenario fails")
    parser.add_argument("--write", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}. There are: {', '.join(SCENARIOS)}")
    if chosen.write and chosen.names:
        parser.error("--write writes the result of all scenarios. Leave the names out.")
    names = tuple(chosen.names or SCENARIOS)
    if missing := requirements.missing(ipv6=[name for name in ("ipv6", "dualstack") if name in names]):
        print("Real nodes can't run here.", *missing, sep="\n", file=sys.stderr)
        return CANNOT_RUN
    try:
        find_binaries()
        programs = find_node_binaries()
        for tool in ("helm", "krew"):
            find_tool(tool)
        image = images.image()
        next_image = images.image(rollout.NEXT) if "rollout" in names else image
        packed = plugin.archive() if "person" in names else image
    except (NoControlPlane, NoTool, images.NoImage) as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    plan = session.Plan(
        names=names,
        kubelet=str(programs["kubelet"]),
        image=str(image),
        next_image=str(next_image),
        plugin=str(packed),
        keep=str(chosen.keep.absolute()),
        write=chosen.write,
    )
    return supervision.run_apart("tests.nodes.session", plan.text())


if __name__ == "__main__":
    sys.exit(main())
