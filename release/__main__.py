"""`python -m release STEP`: the steps of a release, in the order of docs/release.md."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from release import publishing
from release.recipe import NotReady, Order, make, ready
from release.repository import HOST, full_name, image_name

# Git ignores this folder: a file beside the others would keep the tree from a release.
NOTES = Path("build/notes.md")


def main() -> None:
    """Read the arguments, and do the step."""
    given = parser().parse_args()
    try:
        do(given)
    except (NotReady, ValueError) as error:
        sys.exit(str(error))
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is missing")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:4]))} failed with exit code {error.returncode}")


def parser() -> argparse.ArgumentParser:
    """Return what reads the arguments."""
    whole = argparse.ArgumentParser(prog="nox -s release --", description="Do a step of a release.")
    steps = whole.add_subparsers(dest="step", required=True, metavar="STEP")
    shared = argparse.ArgumentParser(add_help=False)
    repository = os.environ.get("GITHUB_REPOSITORY") or full_name()
    shared.add_argument("--repository", default=repository, help="OWNER/NAME that publishes (%(default)s)")
    dist = argparse.ArgumentParser(add_help=False)
    dist.add_argument("--dist", type=Path, default=Path("dist"), help="the folder of the files (%(default)s)")

    def step(name: str, does: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return steps.add_parser(name, help=does, description=does, parents=parents)

    check = step("check", "Say what keeps the tree from a release.")
    check.add_argument("--tag", default="", help="the tag of the release, which must be v and the version")
    base = step("base", "Print the base of the image, with its digest.")
    base.add_argument("--output", type=Path, help="also append base=NAME to this file, for later steps")
    files = step("files", "Make the files in an empty folder.", shared, dist)
    files.add_argument("--base", default="", help="the base of the image, NAME@sha256:DIGEST")
    files.add_argument("--trial", action="store_true", help="permit changes, and a version without a date")
    files.add_argument("--no-plugin", action="store_true", help="leave out the plugin for krew")
    notes = step("notes", "Write the text for the page of the release.", shared)
    notes.add_argument("--to", type=Path, default=NOTES, help="the file (%(default)s)")
    image = step("image", "Build the images, and with --push push and sign them.", shared)
    image.add_argument("--base", default="", help="the base of the image; without it, that of the step base")
    image.add_argument("--push", action="store_true", help="push and sign them")
    platforms = ",".join(publishing.PLATFORMS)
    image.add_argument("--platform", default=platforms, help="build for these (%(default)s)")
    chart = step("chart", "Push and sign the chart.", shared, dist)
    chart.add_argument("--artifact-hub", default="", help="the ID of the chart's repository there")
    step("sign", "Sign the checksums of the files.", dist)
    page = step("page", "Publish the files on the page of the release.", dist)
    page.add_argument("--tag", required=True, help="the tag of the release")
    page.add_argument("--notes", type=Path, default=NOTES, help="its text (%(default)s)")
    step("packages", "Upload the Python packages.", dist)
    return whole


def do(given: argparse.Namespace) -> None:
    """Do the step."""
    match given.step:
        case "check":
            ready(given.tag)
        case "base":
            name = publishing.base()
            print(name)
            if given.output:
                with given.output.open("a", encoding="utf-8") as output:
                    output.write(f"base={name}\n")
        case "files":
            order = Order(
                given.dist.absolute(), given.base, given.trial, not given.no_plugin, given.repository
            )
            for file in make(order):
                print(file)
        case "notes":
            changelog = Path("CHANGELOG.md").read_text(encoding="utf-8")
            name = image_name(given.repository)
            names = {"image": name, "chart": chart_place(name), "address": f"{HOST}/{given.repository}"}
            given.to.parent.mkdir(parents=True, exist_ok=True)
            given.to.write_text(publishing.notes(changelog, names), encoding="utf-8")
        case "image":
            below = given.base or publishing.base()
            platforms = given.platform.split(",")
            pushed = publishing.images(below, given.repository, push=given.push, platforms=platforms)
            publishing.sign(pushed)
        case "chart":
            place = chart_place(image_name(given.repository))
            publishing.sign([publishing.chart(given.dist.absolute(), place, given.artifact_hub)])
        case "sign":
            publishing.sign_files(given.dist.absolute())
        case "page":
            publishing.page(given.dist.absolute(), given.tag, given.notes.absolute())
        case "packages":
            publishing.packages(given.dist.absolute())


def chart_place(image: str) -> str:
    """Return where charts are, beside the image of this name."""
    return f"{image.rpartition('/')[0]}/charts"


if __name__ == "__main__":
    main()
