"""Every command that a page tells its reader to type can be typed: options, folders and files exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

from jobs.cli import commands
from jobs.commands import COMMANDS
from reconciler.model.keys import DEFAULT_PREFIX

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "runbooks").glob("*.md")]
)
AGENT = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")

OURS = "ours"
"""The folder that docs/install.md lets its reader create."""

_BLOCK = re.compile(r"^ *```(?:sh|bash|shell|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*'?(\w+)'?\n.*?^ *\1$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:(?:\.venv/bin/)?reconciler|kubectl maintenance) [^`\n]+)`")
_ENDS = {";", "&&", "||", "|", "&", "(", ")"}
_TOP = tuple(f"{one.name}/" for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith("."))


@dataclass(frozen=True, slots=True)
class Typed:
    """One simple command of a page."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"[:100]

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2]


def split(page: str, text: str) -> Iterator[Typed]:
    """Yield the simple commands of a shell text."""
    text = _HEREDOC.sub("", text).replace("\\\n", " ")
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word not in _ENDS:
                words.append(word)
                continue
            while words and re.fullmatch(r"\w+=.*", words[0]):
                words.pop(0)
            if words:
                yield Typed(page, tuple(words))
            words = []


def typed() -> list[Typed]:
    """Every simple command in the shell blocks of the pages."""
    return [
        command
        for page in PAGES
        for block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        for command in split(page.name, block)
    ]


def inline() -> list[Typed]:
    """Every command of ours that a sentence names."""
    return [
        own(Typed(page.name, tuple(span.split())))
        for page in PAGES
        for span in _INLINE.findall(page.read_text(encoding="utf-8"))
    ]


def test_each_command_of_the_plugins_for_k9s_can_be_typed() -> None:
    page = (ROOT / "docs" / "kubectl.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```yaml\n(plugins:.*?)^```$", page, re.DOTALL | re.MULTILINE)

    for plugin in yaml.safe_load(block)["plugins"].values():
        shell, line = plugin["args"]
        words = own(Typed("kubectl.md", tuple(line.split(" | ")[0].split()))).words
        command = commands.get_command(click.Context(commands), words[1])
        assert (plugin["command"], shell) == ("sh", "-c")
        assert command is not None
        assert command.make_context(words[1], [*words[2:]]).params


def own(command: Typed) -> Typed:
    """The same command as one of `reconciler`, if it is one of the plugin."""
    if command.words[:2] != ("kubectl", "maintenance"):
        return command
    return Typed(command.page, ("reconciler", *command.words[2:]))


TYPED = typed()
INLINE = inline()
OWN = [one for one in map(own, TYPED) if one.program == "reconciler"]


def test_the_pages_have_commands_to_check() -> None:
    assert len(TYPED) > 50
    assert {one.page for one in OWN} >= {"README.md", "install.md", "azure.md", "kubectl.md"}
    assert {one.words[0] for one in TYPED} >= {"kubectl", "reconciler", ".venv/bin/reconciler"}


def test_no_shell_would_take_a_pattern_behind_an_option_for_files() -> None:
    # It looks for files whose names begin with the option.
    words = [word for command in TYPED for word in command.words]
    assert [word for word in words if re.match(r"--?[\w-]+=.*[*?]", word)] == []


@pytest.mark.parametrize("command", OWN, ids=str)
def test_the_parser_of_the_program_takes_the_command(command: Typed) -> None:
    name, *arguments = command.words[1:]
    if name in ("--help", "--version", "-h"):
        return
    found = commands.get_command(click.Context(commands), name)
    assert found is not None, f"there is no command {name}"
    # Parses and converts every argument, and runs nothing.
    found.make_context(name, arguments[: arguments.index(">")] if ">" in arguments else arguments)


@pytest.mark.parametrize("command", INLINE, ids=str)
def test_a_command_in_a_sentence_has_its_name_and_its_options(command: Typed) -> None:
    name, *arguments = command.words[1:]
    assert name in COMMANDS or name.startswith("-"), f"there is no command {name}"
    found = commands.get_command(click.Context(commands), name)
    if found is None:
        return
    known = {option for parameter in found.params for option in parameter.opts} | {"--help", "-h"}
    given = {word.partition("=")[0].rstrip(",.") for word in arguments if word.startswith("-")}
    if name == "agent":
        known |= set(re.findall(r"^### (--[\w-]+)$", AGENT, re.MULTILINE))
    assert given - known == set()


@pytest.mark.parametrize("command", TYPED, ids=str)
def test_every_file_of_ours_that_a_command_names_exists(command: Typed) -> None:
    words = [word.removeprefix("./").partition("=")[2] or word.removeprefix("./") for word in command.words]
    ours = [word for word in words if word.startswith(_TOP) or re.fullmatch(r"requirements\S*\.lock", word)]
    # The source of a copy exists; where it goes to is the reader's own.
    checked = ours[:-1] if command.program == "cp" and len(ours) > 1 else ours

    assert [word for word in checked if not (ROOT / word).exists()] == []


def _folders(verb: str) -> set[str]:
    found = set()
    for one in TYPED:
        words = [*one.words]
        if one.program == "kubectl" and verb in words and "-k" in words:
            found.add(words[words.index("-k") + 1].removeprefix("./").rstrip("/"))
    return found


def test_every_folder_that_is_applied_is_ours_or_the_one_that_the_page_creates() -> None:
    folders = _folders("apply") | _folders("delete")

    assert OURS in folders
    assert {
        one for one in folders if one != OURS and not (ROOT / one / "kustomization.yaml").is_file()
    } == set()
    assert f"mkdir {OURS}" in {" ".join(one.words) for one in TYPED if one.page == "install.md"}


@pytest.mark.heavy
@pytest.mark.parametrize("folder", sorted((_folders("apply") | _folders("delete")) - {OURS}))
def test_every_folder_that_is_applied_builds(folder: str) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl on the path to build the manifests with")
    done = subprocess.run(
        [kubectl, "kustomize", str(ROOT / folder)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert DEFAULT_PREFIX in done.stdout or "node-maintenance" in done.stdout


def test_no_page_installs_from_a_registry_what_is_not_published() -> None:
    published = ("pip install node-maintenance", "pip install 'node-maintenance", "docker pull")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert [one for one in published if one in text] == [], page.name


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_pages_for_newcomers_say_that_no_image_is_published_before_any_command(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert "No image and no package is published yet" in text.partition("```sh")[0]


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_an_old_python_is_refused_before_pip_looks_for_packages_that_it_can_not_have(page: str) -> None:
    """`pip install -e .` names the Python that is needed; a lock file only names a package."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("python3 -m ")]
    installs = re.findall(r"install -q (--no-deps -e \.|-r requirements)", "\n".join(lines))

    assert installs
    assert {*installs[::2]} == {"--no-deps -e ."}
    assert {*installs[1::2]} == {"-r requirements"}


def test_the_page_that_uses_the_command_line_installs_it_first() -> None:
    commands_of = [one for one in TYPED if one.page == "install.md"]
    first = next(number for number, one in enumerate(commands_of) if one.program == "reconciler")
    installs = [one for one in commands_of[:first] if "install" in one.words and one.words[-1] in (".", "-e")]

    assert installs
