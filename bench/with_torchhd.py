"""The same patterns and retrieval with two models of torchhd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torchhd
from torchhd import embeddings

from adlro.model.state import Counts

_SIMILARITY = {"MAP": torchhd.dot_similarity, "BSC": torchhd.hamming_similarity}
_PARTS = 10


def _finder(
    jobs: Counts, bits: int, words: int, fillers: int, levels: int, model: str
) -> Callable[[Counts], int]:
    roles = torchhd.random(jobs.shape[1], bits, model)
    word, level = embeddings.Random(fillers, bits, model), embeddings.Level(levels, bits, model)
    similarity = _SIMILARITY[model]

    def encode(rows: torch.Tensor) -> Any:  # noqa: ANN401  torchhd has no types
        filled = torch.cat([word(rows[..., :words]), level.weight[rows[..., words:]]], dim=-2)
        return torchhd.multiset(torchhd.bind(roles, filled.as_subclass(type(roles))))

    parts = np.array_split(jobs, _PARTS)  # all at once would take gigabytes
    memory = torch.cat([encode(torch.from_numpy(part)) for part in parts])

    def find(job: Counts) -> int:
        return int(similarity(encode(torch.from_numpy(job)), memory).argmax())

    return find


def finders(
    jobs: Counts, bits: int, words: int, fillers: int, levels: int
) -> list[Callable[[Counts], int]]:
    """Return retrieval by each model on one thread; after `words` word roles come the levels."""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    return [_finder(jobs, bits, words, fillers, levels, model) for model in _SIMILARITY]
