"""What the packages bring that no command can load: almost half of their size.

Tests import every module that the program can import, and make every client, in a collected image. They also
fail if a file that stays imports one that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unused:
    """Why these files and folders are never loaded. `but` names those of them that stay."""

    why: str
    paths: tuple[str, ...]
    but: tuple[str, ...] = ()


UNUSED = (
    Unused(
        "The program uses the credentials and the transport of this client. A class for a kind or a group of"
        " the API is loaded when somebody asks for it by its name, and nobody does.",
        ("kubernetes/client/api/*.py", "kubernetes/client/models/*.py"),
        but=("kubernetes/client/api/__init__.py", "kubernetes/client/models/__init__.py"),
    ),
    Unused(
        "The program has threads and no event loop. It loads no asynchronous client, and none of the packages"
        " that only such clients need.",
        (
            *("aiohappyeyeballs", "aiohttp", "aiohttp_retry", "aiosignal", "attr", "attrs", "frozenlist"),
            *("multidict", "propcache", "yarl"),
            *("kubernetes/aio", "prometheus_client/aiohttp", "prometheus_client/twisted"),
            *("azure/*/aio", "azure/mgmt/*/aio"),
            *("azure/core/pipeline/transport/_aiohttp.py", "azure/core/rest/_aiohttp.py"),
        ),
    ),
    Unused(
        "rich colors source code, Markdown and tracebacks with them. The program prints none in color.",
        (
            "markdown_it",
            "markdown_it_py-*.dist-info",
            "mdurl",
            "pygments",
            "rich/markdown.py",
            "rich/syntax.py",
            "rich/traceback.py",
        ),
    ),
    Unused(
        "cryptography was built with cffi. It loads the compiled `_cffi_backend` alone, which stays.",
        ("cffi", "pycparser"),
    ),
    Unused(
        "pbr builds packages with setuptools, whose .pth file would run at each start of Python.",
        ("_distutils_hack", "distutils-precedence.pth", "pkg_resources", "setuptools"),
    ),
    Unused(
        "pydantic loads its old version for models of that version. The program has none.", ("pydantic/v1",)
    ),
    Unused(
        "The program calls EC2. The other services that stay give credentials: to a Pod, and to a person.",
        ("botocore/data/*/", "boto3/data/*/"),
        but=tuple(f"botocore/data/{name}" for name in ("ec2", "signin", "sso", "sso-oidc", "sts")),
    ),
    Unused(
        "These are the packages' own tests and examples.",
        (
            "*/tests/",
            "**/*_test.py",
            "google/protobuf/internal/*_benchmark.py",
            "google/protobuf/internal/testing_*.py",
            "keystoneauth1/fixture",
            "kubernetes/dynamic/test_*.py",
            "markdown/test_tools.py",
            "stevedore/example*",
        ),
    ),
    Unused(
        "Type checkers read the stubs, and compilers the sources.",
        ("**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.c", "**/*.h"),
    ),
    Unused("pip reads these lists of files. It is not in the image.", ("*.dist-info/RECORD",)),
)


def unused(packages: Path) -> Iterator[Path]:
    """Yield the files and folders to leave out of a folder `site-packages`.

    SystemExit if a package is there without what is named of it: its authors have moved that.
    """
    for entry in UNUSED:
        stay = {packages / path for path in entry.but}
        for pattern in entry.paths:
            paths = [path for path in packages.glob(pattern) if path not in stay]
            first, _, inner = pattern.partition("/")
            if inner and not paths and (packages / first).exists():
                raise SystemExit(f"image/unused.py names {pattern}, and {first} has nothing of that name")
            yield from paths
            if not inner and paths:
                # What is left out as a whole is not listed as installed.
                yield from packages.glob(f"{pattern}-*.dist-info")
