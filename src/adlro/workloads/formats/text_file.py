"""Text files, plain or gzip, that are read once from start to end in blocks of whole lines."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, cast

from adlro.errors import TraceError
from adlro.files import open_bytes

_GZIP = b"\x1f\x8b"
_BLOCK = 1 << 20  # bytes read at a time
LONGEST = 1 << 20  # bytes of a row


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
            self._file = open_bytes(path)
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
