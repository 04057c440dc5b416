"""The workflows of .github: what they name exists, what they run is pinned, and their rights are few.

`actionlint` checks their form, in tests/real/tools.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import noxfile
from release.__main__ import parser
from release.krew.archive import PYTHONS
from release.repository import full_name
from release.version import ROOT
from tests.nodes import images, requirements

Job = dict[str, Any]
WORKFLOWS = {file.stem: file for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
TEXTS = {name: file.read_text(encoding="utf-8") for name, file in WORKFLOWS.items()}
# YAML 1.1 reads the key `on` as true.
READ: dict[str, Any] = {
    name: yaml.safe_load(text.replace("\non:", '\n"on":')) for name, text in TEXTS.items()
}
JOBS: dict[str, Job] = {
    f"{name}/{job}": body for name, workflow in READ.items() for job, body in workflow["jobs"].items()
}
STEPS = [(job, step) for job, body in JOBS.items() for step in body["steps"]]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield each command of each workflow: the job, and its words."""
    for job, step in STEPS:
        for line in step.get("run", "").replace("&&", "\n").replace("|", "\n").splitlines():
            if words := shlex.split(line):
                yield job, words


COMMANDS = list(commands())


def after(words: list[str], *before: str) -> list[str]:
    """The words that come after others, none if those are not there."""
    for start in range(len(words)):
        if tuple(words[start : start + len(before)]) == before:
            return words[start + len(before) :]
    return []


def test_the_workflows_are_those_of_the_project() -> None:
    assert WORKFLOWS.keys() >= {"ci", "nodes", "release", "updates", "scorecard", "codeql"}
    assert all(READ[name]["name"] == name for name in WORKFLOWS)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_each_action_is_pinned_by_its_commit_with_the_version_beside_it(name: str) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.+)$", TEXTS[name], re.MULTILINE)

    assert used
    assert [
        line for line in used if not re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ] == []


def test_an_action_has_one_commit_and_one_version_everywhere() -> None:
    pinned = {
        (re.sub(r"(github/codeql-action)/.*", r"\1", action), commit)
        for text in TEXTS.values()
        for action, commit in re.findall(r"uses: ([^@\s]+)@(.+)", text)
    }

    assert len(pinned) == len({action for action, _ in pinned})


@pytest.mark.parametrize("job", JOBS)
def test_each_job_has_a_time_limit_and_permissions_of_its_own(job: str) -> None:
    workflow = READ[job.partition("/")[0]]

    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]
    assert JOBS[job]["timeout-minutes"] <= 120
    assert JOBS[job]["permissions"]["contents"] in ("read", "write")


def test_only_these_jobs_may_write_something() -> None:
    writes = {
        job: {name for name, may in body["permissions"].items() if may == "write"}
        for job, body in JOBS.items()
    }

    assert {job: found for job, found in writes.items() if found} == {
        "release/image": {"packages", "id-token"},
        "release/chart": {"packages", "id-token"},
        "release/page": {"contents", "id-token"},
        "release/packages": {"id-token"},
        "release/site": {"pages", "id-token"},
        "updates/locks": {"contents", "pull-requests", "actions"},
        "codeql/analyze": {"security-events"},
        "scorecard/scorecard": {"id-token", "security-events"},
    }


def test_no_checkout_leaves_its_token_to_later_steps() -> None:
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_text_from_outside_becomes_part_of_a_command() -> None:
    assert [step for _, step in STEPS if "${{" in step.get("run", "")] == []


def test_a_fork_runs_them_as_they_are() -> None:
    owner = full_name().partition("/")[0]

    assert [name for name, text in TEXTS.items() if re.search(rf"\b{owner}/|\bsecrets\.\w", text)] == []


def test_each_session_that_they_run_is_one_of_nox() -> None:
    named = {rest[0] for _, words in COMMANDS if (rest := after(words, "-s"))}
    named |= {rest[0] for hook in hooks() if (rest := after(shlex.split(hook["entry"]), "-s"))}

    assert {"release", "nodes", "site", "lock", "lint"} <= named
    assert [name for name in named if not isinstance(getattr(noxfile, name, None), type(noxfile.lint))] == []


def test_each_step_of_a_release_is_done_and_takes_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    for job, words in COMMANDS:
        if rest := after(words, "-s", "release", "--"):
            done.append((job, parser().parse_args(rest).step))

    with pytest.raises(SystemExit):
        parser().parse_args(["no step"])
    steps = re.findall(r"\w+", capsys.readouterr().err.partition("choose from ")[2])
    assert [step for job, step in done if job.startswith("release/")] == [
        *("check", "base", "files", "image", "chart", "sign", "notes", "page", "packages")
    ]
    assert {step for _, step in done} == set(steps)


def test_each_file_and_module_that_they_name_exists() -> None:
    programs = [words[0] for _, words in COMMANDS if "/" in words[0] and not words[0].startswith(".venv/")]
    locks = [rest[0] for _, words in COMMANDS if (rest := after(words, "-r"))]
    modules = [
        rest[0] for _, words in COMMANDS if (rest := after(words, "-m")) and rest[0] not in ("pip", "venv")
    ]
    patterns = [
        one
        for text in TEXTS.values()
        for found in re.findall(r"hashFiles\((.+?)\)", text)
        for one in re.findall(r"'([^']+)'", found)
    ]
    patterns += [
        path
        for workflow in READ.values()
        for path in (workflow["on"].get("pull_request") or {}).get("paths", [])
    ]

    assert programs == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert [lock for lock in locks if not (ROOT / lock).is_file()] == []
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    assert modules
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []
    assert patterns


def test_the_tests_run_on_each_supported_python_and_both_architectures() -> None:
    matrix = JOBS["ci/tests"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)

    assert matrix["python"] == list(PYTHONS) == classifiers
    assert project["requires-python"] == f">={PYTHONS[0]}"
    assert [runner.endswith("-arm") for runner in matrix["runner"]] == [False, True]
    assert [step["run"] for job, step in STEPS if job == "ci/tests" and "run" in step][-1] == ".ci/run"


def test_the_nodes_get_each_package_that_they_need() -> None:
    (installed,) = [rest for _, words in COMMANDS if (rest := after(words, "apt-get", "install"))]
    needed = {*requirements.PACKAGES.values(), *images.PROGRAMS.values(), "containernetworking-plugins"}
    # Every Debian and Ubuntu has these.
    needed -= {"mount", "util-linux"}

    assert needed - set(installed) == set()


def test_a_tag_is_all_that_a_release_needs() -> None:
    assert READ["release"]["on"] == {"push": {"tags": ["v*"]}}
    assert JOBS["release/packages"]["environment"] == "pypi"
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    assert "the workflow `release.yml`, the environment `pypi`" in page
    assert set(re.findall(r"vars\.(\w+)", TEXTS["release"])) == set(re.findall(r"variable `(\w+)`", page))


def hooks() -> list[dict[str, Any]]:
    """The hooks of pre-commit."""
    file = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    return [hook for repository in yaml.safe_load(file)["repos"] for hook in repository["hooks"]]


def test_the_hooks_before_a_commit_are_sessions_of_nox() -> None:
    found = {hook["id"]: hook["entry"] for hook in hooks()}

    assert found == {name: f".venv/bin/nox -s {name}" for name in ("lint", "types", "imports", "quick")}
