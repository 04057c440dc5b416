"""What a run may leave behind, all at once, for the test that kills its owner."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.nodes import cgroups, network
from tests.support.controlplane.configuration import IPV4


def main() -> None:
    """Make it, say so, and wait."""
    folder = Path(sys.argv[1])
    group = f"{folder.name}/node1"
    cgroups.make(group)
    network.prepare([IPV4])
    network.plug_in("node1", 1, [IPV4])
    place = folder / "node1"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "left", str(place)], check=True)
    (place / "file").touch()
    # Nobody waits for it, no terminal ends it, and it is frozen.
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    for file in cgroups.files_to_join(group):
        file.write_text(str(sleeper.pid), encoding="ascii")
    cgroups.freeze(group, frozen=True)
    print(folder, flush=True)
    time.sleep(1000)


if __name__ == "__main__":
    main()
