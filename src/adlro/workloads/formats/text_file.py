"""Text files, plain or gzip, that are read once from start to end in blocks of whole lines."""

from __future__ import annotations

import errno
import gzip
import io
import stat
import threading
import zlib
from pathlib import Path
from typing import IO, cast

from adlro.errors import TraceError
from adlro.files import open_bytes

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20  # bytes read at a time
LONGEST = 1 << 20  # bytes of a row
_PIPE_WAIT_S = 5.0  # for a program to open the other end of a named pipe


def _opened(path: Path) -> io.BufferedReader:
    """Open a file to read bytes; wait a while for the writer of a named pipe.

    Raises:
        OSError: the file cannot be read, or nobody writes to the pipe.
    """
    if not stat.S_ISFIFO(path.stat().st_mode):
        return open_bytes(path)
    found: list[io.BufferedReader] = []
    # To open a pipe blocks until it has a writer; a daemon thread does not hold up the end.
    waiting = threading.Thread(target=lambda: found.append(path.open("rb")), daemon=True)
    waiting.start()
    waiting.join(_PIPE_WAIT_S)
    if not found:
        raise OSError(errno.ETIMEDOUT, f"nothing writes to this pipe ({_PIPE_WAIT_S:g} s)")
    return found[0]


class TextFile:
    """An open text file; its first bytes, `head`, can be examined before the rest is read."""

    def __init__(self, path: Path) -> None:
        """Open a file and read its first bytes.

        Raises:
            TraceError: there is no such file, or its beginning cannot be read.
        """
        self.path = path
        self.lines = 0  # read so far
        try:
            if path.is_dir():
                raise TraceError(f"{path}: is a folder; name a file")
            self._file = _opened(path)
            is_gzip = self._file.peek(2)[:2] == _GZIP
        except OSError as exc:
            raise TraceError(f"{path}: cannot be read: {exc.strerror}") from exc
        self._stream = cast("IO[bytes]", self._file)
        if is_gzip:
            self._stream = cast("IO[bytes]", gzip.GzipFile(fileobj=self._file))
        try:
            self.head = self._rest = self._more(_BLOCK)
        except TraceError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()

    def _more(self, size: int) -> bytes:
        parts, wanted = [], size
        try:
            while wanted > 0:
                part = self._stream.read(wanted)
                if not part:
                    break
                parts.append(part)
                wanted -= len(part)
        except (OSError, EOFError, zlib.error) as exc:
            why = "is cut short or not gzip at all; fetch it again"
            if self._stream is self._file and isinstance(exc, OSError):
                why = f"cannot be read: {exc.strerror}"
            where = f"after line {self.lines:,}: " if self.lines else ""
            raise TraceError(f"{self.path}: {where}{why}") from exc
        return b"".join(parts)

    def everything(self, most: int) -> bytes:
        """Return the content of the whole file.

        Raises:
            TraceError: the file has more than `most` bytes, or cannot be read.
        """
        data = self.head + self._more(max(0, most + 1 - len(self.head)))
        if len(data) > most:
            raise TraceError(
                f"{self.path}: has more than {most >> 20:,} MiB, the most that is read at once; "
                "cut it into parts"
            )
        return data

    def block(self, left: bytes) -> tuple[bytes, bool]:
        """Read the next block of whole lines.

        Args:
            left: bytes of the block before that were not used; they are put in front.

        Returns:
            The bytes, and whether the file ends with them.

        Raises:
            TraceError: a line is longer than LONGEST, or the file cannot be read.
        """
        more = self._more(_BLOCK)
        data = left + self._rest + more
        cut = data.rfind(b"\n") + 1 if more else len(data)
        self._rest = data[cut:]
        if len(self._rest) > LONGEST:
            line = self.lines + data.count(b"\n") + 1
            raise TraceError(
                f"{self.path}:{line}: a line of more than {LONGEST:,} bytes; is this a text file?"
            )
        return data[:cut], not more
