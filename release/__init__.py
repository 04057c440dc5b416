"""How a release is made: `nox -s release` and `python -m release.version`, see docs/release.md."""
