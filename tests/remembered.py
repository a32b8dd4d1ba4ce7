"""Small memories for tests: jobs by words, learned and recalled in a line."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from adlro.features.hypervectors.encode_kernel import encode
from adlro.features.hypervectors.learn_kernel import Completion, learn
from adlro.features.hypervectors.memory import (
    Memory,
    Query,
    Scratch,
    Size,
    Weighing,
    empty,
    work_for,
)
from adlro.features.hypervectors.recall_kernel import answer, recall
from adlro.features.hypervectors.schema import MODEL, Role, Schema, Space, key, space_of

# Of 256 bits 128, 64 and 64; a bit of distance is 2 * 8 / 256 = 1/16 nat.
SCHEMA = Schema(
    (Role("user", "word", 4.0), Role("name", "word", 2.0), Role(MODEL, "word", 2.0)), 256
)
PLAIN = Weighing(fresh=1.0, fading=0.0)


class Mind(NamedTuple):
    """A memory and what is needed to use it."""

    space: Space
    memory: Memory
    work: Scratch
    models: tuple[str, ...]

    def pattern(self, user: str = "", name: str = "") -> tuple[Any, Any]:
        filling = np.zeros(self.space.fillers, np.uint64)
        filling[0] = key("user", user) if user else 0
        filling[1] = key("name", name) if name else 0
        bits, known = np.zeros((2, len(self.space.binding)), np.uint64)
        encode(filling, self.space, bits, known)
        return bits, known

    def learn(self, log_seconds, user="", name="", when=0.0, source=0, model="", extra=math.nan):
        place = self.models.index(model) if model else -1
        bits, _ = self.pattern(user, name)
        result = Completion(float(log_seconds), float(extra), float(when), source, place)
        return learn(self.memory, bits, result)

    def query(self, user="", name="", extra=math.nan, kind=-1, prior=None) -> Query:
        bits, known = self.pattern(user, name)
        speeds = np.zeros(len(self.models)) if prior is None else np.array(prior, float)
        return Query(bits, known, float(extra), kind, speeds)

    def recall(self, query: Query, weighing: Weighing = PLAIN, model: str = "") -> Any:
        """The answer for a model, with the sources' shares as its own; "" = none in particular."""
        count = recall(self.space, self.memory, query, weighing, self.work)
        place = self.models.index(model) if model else -1
        out = self.work.answers[max(place, 0)]
        answer(self.space, self.memory, query, weighing, place, count, self.work, out)
        return out.copy(), self.work.sources[:count].copy()


def mind(size: Size | None = None, models: tuple[str, ...] = (), nearest: int = 16) -> Mind:
    """An empty one that never forgets, unless a size says otherwise."""
    space = space_of(SCHEMA)
    memory = empty(space, size or Size(slots=32, half_jobs=math.inf), models)
    return Mind(space, memory, work_for(memory, nearest), models)
