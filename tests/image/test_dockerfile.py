"""How the image is built, by its files: no engine is needed to see what they take and what they leave."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from release.version import write_commit

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-aws.lock",
    "requirements-esx.lock",
    "requirements-openstack.lock",
    "requirements-notify.lock",
    "requirements-otel.lock",
    "requirements-build.lock",
)
# They are not for the image.
OTHER_LOCKS = ("requirements-dev.lock", "requirements-docs.lock", "requirements-release.lock")


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile and its arguments, on one line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], re.sub(r"\s+", " ", line).partition(" ")[2].strip()) for line in lines]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage; what comes before the first FROM is left out."""
    found: list[list[tuple[str, str]]] = []
    for each in instructions():
        if each[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(each)
    return found


def test_every_base_has_a_digest_that_the_build_demands() -> None:
    bases = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    before = instructions()[: [name for name, _ in instructions()].index("FROM")]

    assert set(bases) == {"${PYTHON}", "scratch"}
    # With a default, a build without the argument would use the image that the tag names on that day.
    assert before == [("ARG", "PYTHON")]
    first = next(arguments for name, arguments in stages()[0] if name == "RUN")
    assert re.search(r"\*@sha256:\?{64}\) ;; \*\) .*exit 1", first)


def test_every_build_in_the_docs_names_the_base() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    builds = [
        command
        for page in pages
        for command in re.findall(
            r"^ *((?:docker|buildah|az acr) .*\bbuild .*) \.$", page.read_text(encoding="utf-8"), re.M
        )
    ]

    assert len(builds) >= 6
    assert [one for one in builds if "--build-arg PYTHON=" not in one] == []


def test_the_labels_say_what_the_image_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (labels,) = (arguments for name, arguments in stages()[-1] if name == "LABEL")
    given = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', labels))
    arguments = dict(text.partition("=")[::2] for name, text in stages()[-1] if name == "ARG")

    assert given == {
        "title": project["name"],
        "description": project["description"],
        "licenses": project["license"],
        "version": "${VERSION}",
        "revision": "${REVISION}",
        "created": "${CREATED}",
        "source": "${SOURCE}",
    }
    # A clock would make another image of the same commit.
    assert arguments == {
        "VERSION": project["version"],
        "REVISION": '""',
        "CREATED": '""',
        "SOURCE": project["urls"]["Repository"],
    }


@pytest.mark.parametrize("commit", ["", "0123456789abcdef0123456789abcdef01234567"])
def test_the_build_writes_the_commit_into_the_program(tmp_path: Path, commit: str) -> None:
    for folder in ("by-docker", "by-release"):
        (tmp_path / folder / "reconciler").mkdir(parents=True)
        shutil.copy(ROOT / "reconciler" / "__init__.py", tmp_path / folder / "reconciler")

    done = subprocess.run(
        writes_the_commit(), check=False, cwd=tmp_path / "by-docker", env={**os.environ, "REVISION": commit}
    )
    write_commit(commit, tmp_path / "by-release")

    assert done.returncode == 0
    docker, release = (
        (tmp_path / folder / "reconciler/__init__.py") for folder in ("by-docker", "by-release")
    )
    assert docker.read_text(encoding="utf-8") == release.read_text(encoding="utf-8")
    assert f'\n__commit__ = "{commit}"\n' in docker.read_text(encoding="utf-8")


def test_the_build_refuses_what_is_no_commit(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    shutil.copy(ROOT / "reconciler" / "__init__.py", tmp_path / "reconciler")

    done = subprocess.run(
        writes_the_commit(),
        check=False,
        cwd=tmp_path,
        env={**os.environ, "REVISION": "main"},
        capture_output=True,
        encoding="utf-8",
    )

    assert done.returncode == 1
    assert "REVISION must be a commit" in done.stderr


def writes_the_commit() -> list[str]:
    """The command that does it, as an engine starts it: with the build's arguments in the environment."""
    (command,) = (text for name, text in stages()[0] if name == "RUN" and "__commit__" in text)
    return ["/bin/sh", "-c", command]


def test_the_final_image_has_only_what_was_collected() -> None:
    final = stages()[-1]

    assert final[0] == ("FROM", "scratch")
    assert [arguments for name, arguments in final if name in ("COPY", "ADD")] == ["--from=build /image /"]
    assert "RUN" not in dict(final)
    assert dict(final)["USER"] == "65532:65532"
    assert dict(final)["ENTRYPOINT"] == '["reconciler"]'


def test_whatever_is_installed_is_named_by_its_hash() -> None:
    runs = [arguments for stage in stages() for name, arguments in stage if name == "RUN"]
    pips = [command for run in runs for command in run.split(" && ") if re.match(r"pip\b", command)]

    assert len(pips) == 4
    for command in pips:
        assert "--no-deps" in command
        assert "--require-hashes" in command or "--no-index" in command, command
        # An isolated build would download its tools, without a hash.
        assert "wheel" not in command.split()[:2] or "--no-build-isolation" in command
    assert not any(re.search(r"\b(curl|wget|apt-get|apk|ADD)\b", run) for run in runs)


@pytest.mark.parametrize("lock", [*LOCKS, *OTHER_LOCKS])
def test_every_requirement_of_a_lock_has_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ")
    requirements = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line, re.IGNORECASE)]

    assert requirements
    assert [line for line in requirements if "==" not in line or "--hash=sha256:" not in line] == []


def test_the_build_tools_are_locked_as_they_are_required() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]
    named = {re.split(r"[<>=]", one)[0].replace("_", "-") for one in project["build-system"]["requires"]}
    locked = re.findall(r"^([\w-]+)==", (ROOT / "requirements-build.lock").read_text("utf-8"), re.MULTILINE)
    assert named <= set(locked)


def lets_in(path: str) -> bool:
    """Whether the context of the build has the file: the last pattern that matches decides."""
    let = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split():
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = [path, *(str(parent) for parent in Path(path).parents), *Path(path).parts]
        if any(fnmatch(part, pattern) for part in parts):
            let = line.startswith("!")
    return let


def test_the_context_has_what_the_build_copies_and_nothing_else() -> None:
    copied = [
        source
        for stage in stages()
        for name, arguments in stage
        if name == "COPY" and "--from" not in arguments
        for source in arguments.split()[:-1]
    ]
    files = {"requirements.lock" if one == "${LOCK}" else one for one in copied}

    assert [one for one in files if not lets_in(one if (ROOT / one).is_file() else f"{one}/run.py")] == []
    assert all(map(lets_in, LOCKS))
    others = (".git/config", "tests/conftest.py", "k8s/base/roles.yaml", "image/x", ".env", "docs/aws.md")
    assert [one for one in (*others, "jobs/__pycache__/cli.cpython-311.pyc") if lets_in(one)] == []


@pytest.mark.parametrize("page", ["install.md", "aws.md"])
def test_the_pages_name_the_digest_and_locks_that_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").replace("\\\n", " ")
    tools = ("docker buildx build", "docker build", "buildah build", "az acr build")
    builds = [line.strip() for line in text.splitlines() if line.strip().startswith(tools)]

    assert builds
    assert all('--build-arg PYTHON="$PYTHON"' in line for line in builds)
    assert {lock for line in builds for lock in re.findall(r"LOCK=(\S+)", line)} <= set(LOCKS)
