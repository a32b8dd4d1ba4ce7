"""TensorBoard event files with scalars: protocol-buffer records with CRC-32C checksums."""

from __future__ import annotations

import struct
import time
from pathlib import Path

_POLYNOMIAL = 0x82F63B78  # of CRC-32C, reversed
_MASK = 0xA282EAD8  # added to a rotated checksum: the format stores no plain ones


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C of data, masked as the file format requires."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def _sized(field: int, data: bytes) -> bytes:
    """Encode a length-delimited field: bytes, text or an embedded message."""
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    sums = (struct.pack("<I", masked_crc(part)) for part in (length, event))
    return length + next(sums) + event + next(sums)


def _event(wall_s: float, step: int, content: bytes) -> bytes:
    return _record(b"\x09" + struct.pack("<d", wall_s) + b"\x10" + _varint(step) + content)


class EventFile:
    """Event file of one session; TensorBoard joins the files of a folder by their steps."""

    def __init__(self, folder: Path) -> None:
        now = time.time()
        self._path = folder / f"events.out.tfevents.{time.time_ns() // 1000}.adlro"
        self._path.write_bytes(_event(now, 0, _sized(3, b"brain.Event:2")))

    def write(self, step: int, values: dict[str, float]) -> None:
        """Append the scalars of one step to the file."""
        content = b"".join(
            _sized(1, _sized(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
            for tag, value in values.items()
        )
        with self._path.open("ab") as file:
            file.write(_event(time.time(), step, _sized(5, content)))
