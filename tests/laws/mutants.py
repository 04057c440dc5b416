"""Remove each rule from a copy of the program, and check that its test fails.

Run by `nox -s mutants`. The rules stand in the `mutants.txt` of the folders of tests. A place or code that is
no longer in the program, or more than once, is an error and not a quiet success.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from tests.laws.mutant import Mutant, read
from tests.laws.places import ROOT, DoesNotFit, Index
from tests.laws.trials import files_of, try_all

MUTANTS = tuple(
    mutant
    for path in sorted((ROOT / "tests").rglob("mutants.txt"))
    for mutant in read(path.read_text(encoding="utf-8").splitlines())
)


def _where(mutant: Mutant, index: Index) -> str:
    try:
        return ", ".join(dict.fromkeys(edit.found(index)[0] for edit in mutant.edits))
    except DoesNotFit as error:
        return f"NOT FOUND: {error}"


def main(arguments: Sequence[str]) -> int:
    """Try all mutants, or those that are asked for; 1 when one survives or fits no longer."""
    parser = ArgumentParser(
        prog="python -m tests.laws.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("laws", nargs="*", type=int, help="numbers of laws, 0 for the rules of no law")
    parser.add_argument("--only", default="", help="a part of the rule, of the file or of its test file")
    parser.add_argument("--list", action="store_true", help="print the rules, and run nothing")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="runs at a time (cores)")
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not run the tests with nothing removed first"
    )
    asked = parser.parse_args(arguments)
    index = Index()
    where = {
        mutant: _where(mutant, index) for mutant in MUTANTS if not asked.laws or mutant.law in asked.laws
    }
    chosen = [
        mutant
        for mutant, file in where.items()
        if any(asked.only in text for text in (mutant.rule, file, *files_of(mutant)))
    ]
    if not chosen:
        parser.error("no mutant is like that")
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.law:>2}  {mutant.rule:<62}{where[mutant]}")
        return 0
    return try_all(chosen, at_once=asked.at_once, baseline=not asked.no_baseline)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
