"""No file needs itself by way of others, not even for types or for an import within a function."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_there_is_no_circle_of_files() -> None:
    graph = grimp.build_graph("reconciler", "jobs", cache_dir=None)
    imported = {file: graph.find_modules_directly_imported_by(file) for file in graph.modules}

    # CycleError names the files.
    TopologicalSorter(imported).prepare()
