"""The project's tasks. They run in the environment that calls nox: `.venv`, as in the README."""

from __future__ import annotations

import sys
from pathlib import Path
from random import SystemRandom

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "imports", "size", "tests", "tools"]

# The full path, because `.venv/bin` need not be in PATH.
PYTHON = sys.executable
# Tests go out in the order of tests/conftest.py, as tests/support/scheduling.py says.
_IN_ORDER = ("--dist", "loadscope", "--no-loadscope-reorder")
# Against programs of others. Only the session `tools` imports them.
_OF_TOOLS = "tests/real/tools"
# Four workers keep two cores busy, because tests of the API server wait. Each has a control plane of its own.
PARALLEL = ("-n", "4", *_IN_ORDER, f"--ignore={_OF_TOOLS}")
# Tests of one stage hardly wait, and each worker needs 3 seconds of CPU time to import them all. What goes
# over the whole project is left out.
_OVER_ALL = ("charts", "docs", "examples", "explore", "hostile", "image", "monitoring", "real", "release")
QUICK = ("-n", "3", "--dist", "worksteal", *(f"--ignore=tests/{folder}" for folder in _OVER_ALL))
# Two of these tests take a minute each, so they begin first, and the others run beside them.
TOOLS = ("-n", "3", *_IN_ORDER)
_BIN = Path(sys.executable).parent


def tool(name: str) -> str:
    """Return a program of this environment by its path."""
    return str(_BIN / name)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format and lint rules."""
    session.run(tool("ruff"), "format", "--check", ".")
    session.run(tool("ruff"), "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, tests included."""
    session.run(tool("mypy"))


@nox.session
def imports(session: nox.Session) -> None:
    """Check the import contracts of docs/design.md."""
    session.run(tool("lint-imports"), "--no-logo")


@nox.session
def size(session: nox.Session) -> None:
    """Print the size of the project, and fail on a circle of imports; `-- --list` names what is counted."""
    session.run(PYTHON, "-m", "tests.size", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test; the real API server is built on first use (5 minutes, with Go)."""
    session.run(PYTHON, "-m", "pytest", *PARALLEL, *session.posargs)


@nox.session
def tools(session: nox.Session) -> None:
    """Run the tests against programs of others, such as Alertmanager; Go builds them on first use."""
    # One after the other: two builds at once take longer than a test may.
    session.run(PYTHON, "-m", "tests.support.tools")
    session.run(PYTHON, "-m", "pytest", *TOOLS, _OF_TOOLS, *session.posargs)


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Run tests against other minors of Kubernetes, and write docs/versions.md; `-- 1.37 -n 2` for one."""
    session.run(PYTHON, "-m", "tests.versions", *session.posargs)


@nox.session(default=False)
def quick(session: nox.Session) -> None:
    """Run the tests of each stage and the laws, with few examples: half a minute."""
    command = [PYTHON, "-m", "pytest", *QUICK, "-m", "not cluster and not heavy"]
    session.run(*command, *session.posargs, env={"LAWS_PROFILE": "quick"})


@nox.session(default=False)
def shuffled(session: nox.Session) -> None:
    """Run every test in a random order; `-- --shuffle SEED` repeats one."""
    seed = [] if "--shuffle" in session.posargs else ["--shuffle", str(SystemRandom().randrange(10**6))]
    session.run(PYTHON, "-m", "pytest", *PARALLEL, *seed, *session.posargs)


@nox.session(default=False)
def searched(session: nox.Session) -> None:
    """Search the properties for new examples; a failing one stays in `.hypothesis/` and is tried first."""
    command = [PYTHON, "-m", "pytest", *PARALLEL, "-m", "not cluster"]
    session.run(*command, *session.posargs, env={"LAWS_PROFILE": "random"})


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Write the generated parts of docs/: settings, commands, the picture, and the dashboard for Grafana."""
    session.run(PYTHON, "-m", "reconciler.settings.reference", "docs/settings.md")
    session.run(PYTHON, "-m", "jobs.reference", "docs/commands.md")
    session.run(PYTHON, "-m", "website.dashboard", "k8s/monitoring/dashboard.json")
    session.run(PYTHON, "-m", "website.house", "docs/images/house.svg")


@nox.session(default=False, venv_backend="virtualenv", reuse_venv=True)
def site(session: nox.Session) -> None:
    """Build the docs as a site in build/site, and check their links; `-- serve` shows it while you write."""
    session.install("--require-hashes", "-r", "requirements-docs.lock")
    # The theme's advertisement for its successor.
    session.run("mkdocs", *(session.posargs or ["build"]), env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(default=False)
def chart(session: nox.Session) -> None:
    """Write the generated files of the Helm chart, from the manifests in k8s/ and its values."""
    session.run(PYTHON, "-m", "charts.generator")


@nox.session(default=False, venv_backend="virtualenv", reuse_venv=True)
def release(session: nox.Session) -> None:
    """Do a step of a release, see docs/release.md; without one, make the files in dist/."""
    locks = ("-r", "requirements-build.lock", "-r", "requirements-release.lock")
    session.install("--require-hashes", *locks)
    session.run("python", "-m", "release", *(session.posargs or ["files"]))


@nox.session(default=False)
def image(session: nox.Session) -> None:
    """Build the image (Linux, root) and print its largest parts; `-- image.tar` for one that is built."""
    if session.posargs:
        session.run(PYTHON, "-m", "image.parts", *session.posargs)
    else:
        session.run(PYTHON, "-m", "tests.nodes.images", "--parts")


@nox.session(default=False)
def cluster(session: nox.Session) -> None:
    """Start a real API server with an AKS-shaped cluster, for a person, until Ctrl-C."""
    session.run(PYTHON, "-m", "tests.support.controlplane", *session.posargs)


@nox.session(default=False)
def hostile(session: nox.Session) -> None:
    """Let faults happen to two instances of `serve`, beside hostile objects; `-- --minutes 60 --seed N`."""
    session.run(PYTHON, "-m", "tests.hostile", *session.posargs)


@nox.session(default=False)
def nodes(session: nox.Session) -> None:
    """Play scenarios on real kubelets, as root; `-- NAME` plays one, `-- --write` keeps the result."""
    session.run(PYTHON, "-m", "tests.nodes", *session.posargs)


@nox.session(default=False)
def explore(session: nox.Session) -> None:
    """Play random histories on the simulation and check every law; `-- --days 10000 --seed N --jobs 2`."""
    session.run(PYTHON, "-m", "tests.explore", *session.posargs)


@nox.session(default=False)
def mutants(session: nox.Session) -> None:
    """Remove each law's rule from the code and check that its test fails."""
    session.run(PYTHON, "-m", "tests.laws.mutants", *session.posargs)


@nox.session(default=False)
def without(session: nox.Session) -> None:
    """Delete each plugin from a copy, then all, and check what is left; `-- publishing aws` for some."""
    session.run(PYTHON, "-m", "tests.without", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure passes, drains, starts and cordons; `-- scale` the protocols of docs/large-clusters.md."""
    modules = {"pass": "tests.bench.sweep", "drain": "tests.bench.drains", "arm": "tests.sources.arm.bench"}
    modules |= {
        name: f"tests.bench.{name}"
        for name in ("start", "wake", "patches", "readers", "ahead", "agent", "scale")
    }
    benches = Path("tests", "features").glob("*/bench.py")
    modules |= {path.parent.name: f"tests.features.{path.parent.name}.bench" for path in benches}
    for name in session.posargs or ["pass", "drain", "start", "wake"]:
        session.run(PYTHON, "-m", modules[name])


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Write the lock files again from pyproject.toml; `-- --upgrade` takes newer packages."""
    compile_ = ["uv", "pip", "compile", "-q", "--universal", "--generate-hashes", "--no-header"]
    compile_ += ["--python-version", "3.11", "--no-emit-index-url", *session.posargs]
    for group in ("build", "docs", "release"):
        session.run(*compile_, "--group", group, "-o", f"requirements-{group}.lock", external=True)
    compile_ += ["pyproject.toml"]
    session.run(*compile_, "-o", "requirements.lock", external=True)
    session.run(*compile_, "--group", "dev", "-o", "requirements-dev.lock", external=True)
    images = ["requirements.lock"]
    for extra in ("aws", "notify", "esx", "openstack", "otel"):
        images.append(f"requirements-{extra}.lock")
        session.run(*compile_, "--extra", extra, "-o", images[-1], external=True)
    # The image is built from wheels alone, for two architectures. This installs nothing.
    wheels = ["uv", "pip", "install", "-q", "--dry-run", "--no-deps", "--only-binary", ":all:"]
    wheels += ["--python-version", "3.11", "--target", ".nox/wheels"]
    for name in images:
        for machine in ("x86_64", "aarch64"):
            platform = ("--python-platform", f"{machine}-manylinux_2_28")
            session.run(*wheels, *platform, "--require-hashes", "-r", name, external=True)
