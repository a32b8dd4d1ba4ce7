"""Broken files of every format: our own error comes out, or a history that is sound."""

import contextlib
import gzip

import numpy as np
import pytest

from adlro.errors import AdlroError
from adlro.model.history import NUMBERS, WORDS
from adlro.workloads.formats import npz
from adlro.workloads.formats.gather import ReadOptions
from adlro.workloads.formats.registry import read
from tests.histories import SAMPLES, history

PIECES = (
    b"", b",", b"|", b"\n", b"\r", b'"', b"-", b"1e999", b"nan", b"inf", b"-1", b"\0", b"\xff",
    b";", b"\t", b"{", b"}", b"[", b"99999999999999999999", b"1_0", "ä".encode(), b"0x10", b".",
    b"2017-13-40 99:99:99", b"cpu=", b"null", b"true", b'""', b" ", b"\xef\xbb\xbf",
)  # fmt: skip


def spoilt(data, rng):
    """The bytes with a few pieces put in, cut out, doubled or overwritten."""
    for _ in range(int(rng.integers(1, 5))):
        a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        piece = PIECES[int(rng.integers(len(PIECES)))]
        what = int(rng.integers(5))
        if what == 0:
            data = data[:a] + piece + data[a:]
        elif what == 1:
            data = data[:a] + data[min(b, a + 40) :]
        elif what == 2:
            data = data[:b] + data[a:b][:60] + data[b:]
        elif what == 3:
            data = data[:a]
        else:
            data = data[:a] + piece + data[a + len(piece) :]
        if not data:
            break
    return data


def check(found):
    """A history holds together whatever it was read from."""
    for name in NUMBERS:
        values = getattr(found, name)
        assert len(values) == found.jobs
        assert not np.isinf(values).any()
    for name in WORDS:
        codes = getattr(found, name)
        assert codes.min() >= -1
        assert codes.max() < len(found.tables[name])
    assert len(found.id) in (0, found.jobs)
    assert not (found.run_s < 0).any()
    assert found.gpus.min() >= -1


def fuzz(folder, seed, count):
    rng = np.random.default_rng(seed)
    samples = [text.encode() for text in SAMPLES.values()]
    samples.append(npz.pack(history(folder, SAMPLES["sacct"])))
    path = folder / "fuzz"
    taken = 0
    for i in range(count):
        data = spoilt(samples[i % len(samples)], rng)
        if rng.random() < 0.1:
            data = spoilt(gzip.compress(data, 1, mtime=0), rng)
        path.write_bytes(data)
        with contextlib.suppress(AdlroError):
            check(read(path, ReadOptions(lenient=bool(rng.random() < 0.5))))
            taken += 1
    return taken


def test_some_hundred_broken_files_raise_nothing_but_our_own_error(tmp_path):
    assert 0 < fuzz(tmp_path, 7, 400) < 400


@pytest.mark.slow
def test_ten_thousand_broken_files_raise_nothing_but_our_own_error(tmp_path):
    assert 0 < fuzz(tmp_path, 8, 12_000) < 12_000
