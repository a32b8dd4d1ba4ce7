"""List of all file formats, and the function that recognises a file's format and reads it."""

from __future__ import annotations

from pathlib import Path

from adlro.errors import TraceError, suggestion
from adlro.model.history import History
from adlro.workloads.formats import (
    acme,
    cqsim,
    csv_columns,
    eagle,
    gavel,
    helios,
    itp,
    lists,
    npz,
    openb,
    pai,
    philly,
    sacct,
    sacct_json,
    supercloud,
    swf,
    thetagpu,
)
from adlro.workloads.formats.format import Format, Head, head_of, refuse_empty
from adlro.workloads.formats.gather import STRICT, ReadOptions
from adlro.workloads.formats.text_file import TextFile

FORMATS: tuple[Format, ...] = (  # the first that recognises a file is used
    npz.FORMAT,
    sacct_json.FORMAT,
    sacct.FORMAT,
    cqsim.FORMAT,
    swf.FORMAT,
    gavel.FORMAT,
    helios.FORMAT,
    pai.FORMAT,
    pai.HYDRA,
    philly.FORMAT,
    itp.FORMAT,
    thetagpu.FORMAT,
    openb.FORMAT,
    supercloud.FORMAT,
    acme.FORMAT,
    eagle.FORMAT,
    lists.TIRESIAS,
    lists.SIA,
    lists.DLRM,
    csv_columns.FORMAT,
)
_NODE_LISTS = (("sn", "cpu_milli", "memory_mib", "gpu", "model"),)


def _by_name(name: str) -> Format:
    names = [one.name for one in FORMATS]
    if name not in names:
        raise TraceError(f"--format {name}: unknown; {suggestion(name, names)}")
    return FORMATS[names.index(name)]


def _recognised(source: TextFile, head: Head, options: ReadOptions) -> Format:
    if options.format:
        return _by_name(options.format)
    if options.columns:
        return csv_columns.FORMAT
    if head.names in _NODE_LISTS or head.raw.startswith(b"NodeName="):
        raise TraceError(
            f"{source.path}: is a list of nodes, not of jobs; use: adlro cluster import"
        )
    for one in FORMATS:
        if one.recognises(head):
            return one
    first = head.lines[0].strip()[:60] if head.lines else ""
    raise TraceError(
        f"{source.path}:1: no known format begins with {first!r}; name one with --format, or the "
        "columns of a CSV file with --column"
    )


def read(path: Path, options: ReadOptions = STRICT) -> History:
    """Read the history in a file of any known format, plain or compressed by gzip.

    Raises:
        TraceError: the file cannot be read, is in no known format, or has a defective line and the
            options are not lenient.
    """
    source = TextFile(path)
    try:
        head = head_of(source.head)
        refuse_empty(source, head)
        return _recognised(source, head, options).read(source, options)
    finally:
        source.close()
