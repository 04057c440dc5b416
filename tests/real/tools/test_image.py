"""The image's root file system: the program runs in it, with each extra, and there is no shell and no pip."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from image import parts
from image.root import LEFT_OUT
from tests.image.without_unused import modules
from tests.support.tools.building import NoTool, find_environment

# The first run installs the packages of each lock.
pytestmark = pytest.mark.timeout(1200)

ROOT = Path(__file__).parents[3]
LOADED = "import ctypes, hashlib, lzma, socket, ssl, threading, uuid, zlib, zoneinfo"
LOCKS = ("", "-aws", "-esx", "-notify", "-openstack", "-otel")
# pip makes the environments from which the tests take the packages.
OF_PIP = ("pip", "pip-*", "_virtualenv*", "__pycache__")

RARE = {
    ("azure.core._pipeline_client_async", "azure.core.pipeline.transport._aiohttp"): "asynchronous clients",
    ("azure.core.pipeline.transport", "azure.core.pipeline.transport._aiohttp"): "asynchronous clients",
    ("kubernetes.utils.metrics", "kubernetes.client.api.custom_objects_api"): "the program has its own",
    ("msgspec._utils", "attrs"): "for classes of attrs",
    ("pydantic._internal._generate_schema", "pydantic.v1"): "for types of pydantic 1",
    ("rich._extension", "rich.traceback"): "for notebooks",
    ("rich.console", "rich.traceback"): "print_exception is not called",
    ("rich.logging", "rich.traceback"): "rich writes no log",
}
"""Functions that stay and import what is left out, and why nobody calls them."""

CLIENTS = {
    "": "from reconciler.sources.arm.client import connect; connect()('sub').virtual_machines",
    "-aws": (
        "import boto3; session = boto3.session.Session();"
        "[session.client(name, region_name='eu-central-1')"
        " for name in ('ec2', 'signin', 'sso', 'sso-oidc', 'sts')]"
    ),
    "-esx": (
        "from pyVmomi import vim, SoapStubAdapter;"
        "vim.ServiceInstance('ServiceInstance', SoapStubAdapter('localhost')); vim.HostSystem.summary"
    ),
    "-notify": (
        "import apprise; a = apprise.Apprise(); details = a.details(); assert len(details['schemas']) > 100;"
        "assert a.add('slack://aaaaaaaaa/bbbbbbbbb/cccccccccccccccccccccccc'); assert a.add('json://localhost')"
    ),
    "-openstack": (
        "from keystoneauth1.identity.v3 import Password; from keystoneauth1.session import Session;"
        "Session(Password('http://127.0.0.1:9', username='u', password='p'))"
    ),
    "-otel": (
        "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter;"
        "from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter;"
        "from opentelemetry.sdk.trace.export import BatchSpanProcessor;"
        "BatchSpanProcessor(OTLPSpanExporter('http://127.0.0.1:9')); OTLPMetricExporter('http://127.0.0.1:9')"
    ),
}
"""How the client of each image is made."""

OF_CLIENTS = (
    *("tests/http", "tests/kubernetes/test_access.py", "tests/sources/arm", "tests/sources/aws"),
    *("tests/features/kubernikus", "tests/features/machines/test_agent_pools.py", "tests/features/tracing"),
    "tests/features/notices/test_transports.py",
)
"""Tests that send requests with the clients."""


@dataclass(frozen=True)
class Image:
    """The collected tree, the path of the virtual environment in it, and the packages before that."""

    lock: str
    tree: Path
    app: Path
    packages: Path

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python in it, as its user."""
        chroot = shutil.which("chroot")
        if chroot is None or os.geteuid() != 0:
            pytest.skip("only root may change the root directory")
        command = [chroot, "--userspec=65532:65532", str(self.tree), str(self.app / "bin" / "python"), *words]
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            env={"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/", "LANG": "C.UTF-8", **environment},
        )


@pytest.fixture(scope="module", params=LOCKS, ids=lambda lock: lock.removeprefix("-") or "no-extra")
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if shutil.which("ldd") is None:
        pytest.skip("no ldd to find the libraries with")
    try:
        environment = find_environment(f"requirements{request.param}.lock").parent
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("image")
    app, tree = folder / "app", folder / "tree"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", app], check=True, timeout=60)
    (packages,) = app.glob("lib/python*/site-packages")
    (installed,) = environment.glob("lib/python*/site-packages")
    shutil.copytree(installed, packages, ignore=shutil.ignore_patterns(*OF_PIP), dirs_exist_ok=True)
    for name in ("reconciler", "jobs"):
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "bin" / "a-tool").write_text("#!/bin/sh\n", encoding="utf-8")
    command = [sys.executable, "-m", "image.root", "--app", str(app), "--to", str(tree)]
    subprocess.run(command, check=True, timeout=240, cwd=ROOT)
    yield Image(request.param, tree, app, packages)
    shutil.rmtree(folder)


def test_there_is_no_shell_no_pip_and_no_other_program(image: Image) -> None:
    programs = {
        path.name
        for path in image.tree.rglob("*")
        if path.parent.name in ("bin", "sbin") and not path.is_dir()
    }

    assert programs
    assert {name for name in programs if not name.startswith("python")} == set()
    assert [path for path in image.tree.rglob("*") if path.name in ("pip", "ensurepip")] == []
    # Images of Python may not have their libraries.
    assert [*image.tree.rglob("_tkinter.*"), *image.tree.rglob("nis.*")] == []


def test_the_agent_runs_in_it(image: Image) -> None:
    assert image.run("-c", LOADED).stderr == ""
    done = image.run("-m", "reconciler.sources.imds.agent", "--help")

    assert "--imds-address" in done.stdout


def test_it_has_every_module_that_the_program_can_load(image: Image) -> None:
    """Also those that a function imports, such as the client of a cloud."""
    done = image.run("-c", IMPORTING)

    assert done.returncode == 0, done.stderr
    missing = {name.partition(".")[0]: name for name in json.loads(done.stdout)}
    assert {top: name for top, name in missing.items() if _installed(image.packages, top)} == {}
    # Each of these belongs to an extra that this image does not have.
    assert set(missing) <= {"apprise", "boto3", "botocore", "keystoneauth1", "opentelemetry", "pyVmomi"}


def test_it_has_what_its_clients_load(image: Image) -> None:
    for line in {CLIENTS[""], CLIENTS[image.lock]}:
        done = image.run("-c", line, AWS_EC2_METADATA_DISABLED="true")
        assert done.returncode == 0, done.stderr


def test_nothing_that_stays_imports_what_is_left_out(image: Image) -> None:
    left_out = modules(image.packages) | {name.removesuffix(".py") for name in LEFT_OUT}
    (kept,) = (image.tree / image.app.relative_to("/")).glob("lib/python*/site-packages")
    at_once: set[tuple[str, str]] = set()
    in_functions: set[tuple[str, str]] = set()
    for file in kept.rglob("*.py"):
        # Nobody starts a package. Of pbr, which builds packages, others use the version.
        if file.name != "__main__.py" and file.relative_to(kept).parts[0] != "pbr":
            for importer, name, in_function in _imports(file, kept):
                if name in left_out:
                    (in_functions if in_function else at_once).add((importer, name))

    assert at_once == set()
    assert in_functions - set(RARE) == set()


def test_the_clients_do_their_work_without_what_is_left_out() -> None:
    """Their own tests find a module that is loaded by a request only."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.image.without_unused"]
    command += ["-p", "no:cacheprovider", "-m", "not cluster and not heavy"]
    done = subprocess.run(
        [*command, *OF_CLIENTS], cwd=ROOT, check=False, capture_output=True, encoding="utf-8", timeout=900
    )

    assert done.returncode == 0, done.stdout[-3000:]


def test_every_module_is_there_as_bytecode(image: Image) -> None:
    done = image.run("-v", "-c", "import jobs.commands.sweep, reconciler.run")

    assert done.returncode == 0
    # Python says of each module where its code is from. What it compiled would be from its source.
    assert "code object from '/" in done.stderr
    assert [
        line
        for line in done.stderr.splitlines()
        if line.startswith("# code object") and "frozen" not in line and not line.endswith(".pyc'")
    ] == []


def test_it_is_small(image: Image) -> None:
    """With the largest extra too. Not counted: the interpreter, which is not that of a base image here."""
    below_app = image.tree / image.app.relative_to("/")

    assert parts.main([str(below_app)]) == 0


def _installed(packages: Path, name: str) -> bool:
    return (packages / name).exists() or (packages / f"{name}.py").exists() or name in ("reconciler", "jobs")


def _imports(file: Path, packages: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the importing module, the imported one, and whether a function does it.

    Left out is what runs for type checkers only, or when the file is started as a program, and what may fail.
    """
    parts_ = file.relative_to(packages).with_suffix("").parts
    importer = ".".join(parts_[:-1] if parts_[-1] == "__init__" else parts_)
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(file.read_bytes()), False)]
    while waiting:
        node, in_function = waiting.pop()
        if isinstance(node, ast.If) and any(
            word in ast.unparse(node.test) for word in ("TYPE_CHECKING", "__name__")
        ):
            waiting += [(inner, in_function) for inner in node.orelse]
            continue
        if isinstance(node, ast.Try):
            waiting += [(inner, in_function) for inner in (*node.handlers, *node.orelse, *node.finalbody)]
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(parts_[: len(parts_) - node.level]) if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        yield from ((importer, name, in_function) for name in names)
        inside = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        waiting += [(inner, inside) for inner in ast.iter_child_nodes(node)]


IMPORTING = """
import ast, importlib, json, pathlib, sys
import jobs, reconciler
wanted, missing = {}, []
def collect(node):
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.If) and "TYPE_CHECKING" in ast.unparse(inner.test):
            continue
        if isinstance(inner, ast.Import):
            for alias in inner.names:
                wanted.setdefault(alias.name, set())
        elif isinstance(inner, ast.ImportFrom):
            wanted.setdefault(inner.module, set()).update(alias.name for alias in inner.names)
        collect(inner)
for package in (jobs, reconciler):
    folder = pathlib.Path(package.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        collect(ast.parse(file.read_bytes()))
        if file.name != "__main__.py":
            parts = file.relative_to(folder.parent).with_suffix("").parts
            wanted.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), set())
for module, names in sorted(wanted.items()):
    try:
        loaded = importlib.import_module(module)
        for name in names:
            if not hasattr(loaded, name):
                importlib.import_module(f"{module}.{name}")
    except ImportError as error:
        missing.append(error.name)
print(json.dumps(missing))
"""
"""Imports all modules of the program, and all that they import, and prints what is missing."""
