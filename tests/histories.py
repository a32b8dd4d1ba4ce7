"""Small histories in every format, written by hand (tests/data/histories), and files of them."""

import gzip
from pathlib import Path

from adlro.workloads.formats.registry import read

_FOLDER = Path(__file__).parent / "data" / "histories"
SAMPLES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.iterdir())}


def write(folder, content, name="jobs.txt"):
    """A file with this text or these bytes, gzip if its name says so."""
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return path


def history(folder, content, name="jobs.txt"):
    """What a file with this content holds."""
    return read(write(folder, content, name))


def words(history, column):
    """A column of words as text, "" = missing."""
    return [history.word(column, job) for job in range(history.rows)]
