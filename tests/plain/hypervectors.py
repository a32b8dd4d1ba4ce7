"""Plain version of features/hypervectors: bits in lists, a memory that stores every outcome."""

from __future__ import annotations

import hashlib
import struct
from math import exp, inf, log
from typing import NamedTuple

from adlro.features.hypervectors.schema import Role, Schema

ALL = 2**64


def mixed(key: int, at: int) -> int:
    z = (key + (at + 1) * 0x9E3779B97F4A7C15) % ALL
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % ALL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % ALL
    return z ^ (z >> 31)


def key(role: str, text: str) -> int:
    digest = hashlib.blake2b(f"{role}\0{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def random_bit(key: int, at: int) -> int:
    return mixed(key, at // 64) >> (at % 64) & 1


def shares(schema: Schema) -> list[int]:
    """Number of bits of each role: one, plus a part by weight of the rest (largest remainder)."""
    total, rest = sum(role.weight for role in schema.roles), schema.bits - len(schema.roles)
    exact = [role.weight / total * rest for role in schema.roles]
    result = [int(value) for value in exact]
    order = sorted(range(len(exact)), key=lambda r: result[r] - exact[r])
    for r in order[: rest - sum(result)]:
        result[r] += 1
    return [1 + bits for bits in result]


def filler_bit(role: Role, fillers: list[int], first: int, bits: int, at: int) -> int:
    seed = key(role.name, "")
    present = [one for one in fillers if one]
    if not present:
        return random_bit(mixed(seed, 0), at)
    if role.kind == "word":
        return random_bit(present[0], at)
    if role.kind == "bag":
        return min(mixed(one, at) for one in present) & 1
    # A level: the boundary between two cells shifts gradually from one position to the next.
    span = role.levels if role.kind == "circle" else role.levels - 1
    cell, rest = divmod((present[0] - 1) * role.cells, span)
    if at >= first + bits - rest * bits // span:
        cell += 1
    if role.kind == "circle":
        cell %= role.cells
    return random_bit(mixed(seed, 2 + cell), at)


def encode(schema: Schema, filling: list[list[int]]) -> tuple[list[int], list[bool]]:
    """Bits of a pattern, and which of them are known; one list of fillers per role, 0 = missing."""
    result, known, first = [], [], 0
    for role, fillers, bits in zip(schema.roles, filling, shares(schema), strict=True):
        data = hashlib.shake_128(key(role.name, "").to_bytes(8, "little")).digest(schema.bits // 8)
        for at in range(first, first + bits):
            role_bit = data[at // 8] >> (at % 8) & 1
            result.append(filler_bit(role, fillers, first, bits, at) ^ role_bit)
            known.append(any(fillers))
        first += bits
    return result, known


class Outcome(NamedTuple):
    turn: int
    log_seconds: float
    extra: float
    when: float
    source: int


class Pattern(NamedTuple):
    bits: tuple[int, ...]
    model: int
    outcomes: list[Outcome]


class Answer(NamedTuple):
    log_seconds: float
    spread: float
    confidence: float


def straight_log2(x: float) -> float:
    """log2, interpolated linearly between powers of two."""
    (number,) = struct.unpack("<q", struct.pack("<d", x))
    (one,) = struct.unpack("<q", struct.pack("<d", 1.0))
    return float(number - one) * 2.0**-52


class PlainMemory:
    """An associative memory that stores every outcome of every pattern not yet evicted."""

    def __init__(self, schema, slots, latest, half_s, half_jobs, models=()):
        self.schema, self.slots, self.latest = schema, slots, latest
        self.half_s, self.half_jobs = half_s, half_jobs
        self.patterns: list[Pattern] = []
        self.learned, self.now = 0, -inf
        names = [role.name for role in schema.roles]
        counts = shares(schema)
        self.model_first = self.model_bits = 0
        self.models = []
        if "gpu model" in names:
            r = names.index("gpu model")
            self.model_first, self.model_bits = sum(counts[:r]), counts[r]
            for name in models:
                filling = [[0]] * len(names)
                filling[r] = [key("gpu model", name)]
                bits, _ = encode(schema, [[one[0]] for one in filling])
                self.models.append(bits[self.model_first :][: self.model_bits])

    def weight(self, outcome: Outcome) -> float:
        """Decayed weight of an outcome; 1 when it was learned."""
        gone = (self.now - outcome.when) / self.half_s
        gone += (self.learned - outcome.turn) / self.half_jobs
        return 0.5**gone

    def learn(self, bits, log_seconds, extra, when, source, model):
        outcome = Outcome(self.learned, log_seconds, extra, when, source)
        bits = list(bits)
        if model >= 0:
            bits[self.model_first : self.model_first + self.model_bits] = self.models[model]
        for pattern in self.patterns:
            if pattern.bits == tuple(bits) and pattern.model == model:
                pattern.outcomes.append(outcome)
                break
        else:
            new = Pattern(tuple(bits), model, [outcome])
            if len(self.patterns) < self.slots:
                self.patterns.append(new)
            else:
                left = [sum(map(self.weight, pattern.outcomes)) for pattern in self.patterns]
                self.patterns[left.index(min(left))] = new
        self.learned += 1
        self.now = max(self.now, when)

    def recall(self, bits, known, extra, weighing, nearest, asked):
        total = sum(role.weight for role in self.schema.roles)
        per_bit = 2 * total / self.schema.bits * weighing.nats

        def gap(pattern):
            triples = zip(bits, pattern.bits, known, strict=True)
            return sum(k for b, p, k in triples if b != p)

        def cost(pattern):
            age = 1.0 + (self.learned - pattern.outcomes[-1].turn) * (1.0 / weighing.fresh)
            octaves = straight_log2(age)
            return per_bit * 32 * gap(pattern) + weighing.fading * log(2) * 32 * octaves

        chosen = []
        for model in {pattern.model for pattern in self.patterns}:
            same = [pattern for pattern in self.patterns if pattern.model == model]
            chosen += sorted(same, key=lambda pattern: min(int(cost(pattern)), 1023))[:nearest]
        drawn, evidence = [], 0.0
        for pattern in chosen:
            nats = -per_bit * gap(pattern) - per_bit / 2 * (self.schema.bits - sum(known))
            if asked >= 0 and pattern.model >= 0:
                pairs = zip(self.models[asked], self.models[pattern.model], strict=True)
                nats += per_bit * (self.model_bits / 2 - sum(a != b for a, b in pairs))
            evidence += exp(nats) * sum(map(self.weight, pattern.outcomes))
            late, old = pattern.outcomes[-self.latest :], pattern.outcomes[: -self.latest]
            for one in late:
                drawn.append(
                    (self.fade(one.turn, weighing) * exp(nats), one.log_seconds, one.extra)
                )
            if old:
                weights = [self.weight(one) for one in old]
                turn, mean, other = (
                    sum(w * one[i] for w, one in zip(weights, old, strict=True)) / sum(weights)
                    for i in (0, 1, 2)
                )
                weight = self.fade(turn, weighing) * exp(nats) * sum(weights)
                drawn.append((weight, mean, other))
        pairs = [(y + weighing.slope * (extra - x), w) for w, y, x in drawn]
        return self.answer(sorted(pairs), evidence, weighing)

    def fade(self, turn, weighing):
        return (1 + (self.learned - turn) / weighing.fresh) ** -weighing.fading

    @staticmethod
    def answer(pairs, evidence, weighing):
        whole = sum(weight for _, weight in pairs)
        centre, below = pairs[-1][0], 0.0
        for value, weight in pairs:
            below += weight
            if below >= whole / 2:
                centre = value
                break
        if weighing.mean:
            centre = sum(value * weight for value, weight in pairs) / whole
        spread = sum(abs(value - centre) * weight for value, weight in pairs) / whole
        return Answer(centre, spread, evidence / (evidence + weighing.half_evidence))
