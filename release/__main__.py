"""`python -m release --to dist`: make the files of a release, see docs/release.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from release.recipe import NotReady, Order, make


def main() -> None:
    """Read the arguments, and print each file that was made."""
    parser = argparse.ArgumentParser(prog="nox -s release --", description="Make the files of a release.")
    parser.add_argument("--to", type=Path, default=Path("dist"), help="the folder, which must be empty")
    parser.add_argument("--base", default="", help="the base of the image, NAME@sha256:DIGEST")
    parser.add_argument("--trial", action="store_true", help="permit changes, and a version without a date")
    parser.add_argument("--plugin", default="", help="also make the plugin, for archives below this URI")
    parser.add_argument("--homepage", default="", help="the project's page, for the manifest of the plugin")
    given = parser.parse_args()
    if bool(given.plugin) != bool(given.homepage):
        parser.error("give both --plugin and --homepage")
    try:
        made = make(Order(given.to.absolute(), given.base, given.trial, given.plugin, given.homepage))
    except NotReady as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:4]))} failed with exit code {error.returncode}")
    for file in made:
        print(file)


if __name__ == "__main__":
    main()
