"""Packs a folder so that the same files make the same bytes."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path


def pack(folder: Path, to: Path, time: int, below: str = "") -> None:
    """Pack the files of a folder: no owner, no order of the disk, and one time, in seconds since 1970.

    In the archive they are in the folder `below`, or in its root.
    """

    def plain(one: tarfile.TarInfo) -> tarfile.TarInfo:
        one.uid = one.gid = 0
        one.uname = one.gname = ""
        one.mode = 0o755 if one.mode & 0o100 else 0o644
        one.mtime = time
        return one

    # gzip's own header has a name and a time, too.
    with (
        to.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.add(file, str(Path(below) / file.relative_to(folder)), filter=plain)
