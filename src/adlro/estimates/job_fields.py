"""Job fields known at submission, encoded as patterns for the associative memory of `memory`.

A pattern has one role for each field (see features/hypervectors/schema.py); its fillers hold the
values of the fields as 64-bit numbers. Histories, simulated jobs and live jobs use the same roles
with the same weights, in nats, which were fitted on the first halves of public histories: see
docs/estimators.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adlro.compiled import njit, njit_apart, wide
from adlro.errors import ConfigError
from adlro.features.hypervectors.encode_kernel import level_of, mixed, number_key
from adlro.features.hypervectors.schema import (
    MODEL,
    Role,
    Schema,
    Words,
    key,
    place,
    space_of,
)
from adlro.model.history import Codes, History
from adlro.model.state import WHOLE, Counts, Floats, Records

DAY_S = 86_400.0
_PARTS = 6  # of a name at most
_DOUBLINGS = 24  # seconds, MB and cores from 1 to 16 million
_STEPS = 16  # levels of a doubling


def _log_level(name: str, weight: float, cap: int) -> Role:
    """Return the role of a number from 1 on, on a log scale.

    The similarity of two numbers falls to 0 when they differ by a factor of 2**cap.
    """
    levels = _DOUBLINGS * _STEPS + 1
    return Role(name, "level", weight, 1.0, 2.0**_DOUBLINGS, True, levels, _DOUBLINGS // cap)


SCHEMA = Schema(
    (
        Role("user", "word", 4.0),
        Role("account", "word", 2.0),
        Role("queue", "word", 3.0),
        Role("qos", "word", 0.7),
        Role("name", "word", 2.0),
        Role("name parts", "bag", 1.4, most=_PARTS),
        Role("type", "word", 3.0),
        Role("request", "word", 2.8),
        Role("shape", "word", 4.0),  # all demands as one word
        _log_level("requested time", 3.5, 4),
        _log_level("gpus", 0.7, 3),
        _log_level("nodes", 0.7, 3),
        _log_level("cores", 0.7, 3),
        _log_level("memory", 0.7, 3),
        Role("priority", "level", 0.7, 0.0, 1.0, levels=65, cells=4),
        Role("hour", "circle", 0.7, 0.0, DAY_S, levels=96, cells=4),
        # Mean of similar ended jobs: utilisation_kernel.py
        Role("utilisation", "level", 0.7, 0.0, 1.0, levels=17, cells=4),
        Role(MODEL, "word", 1.0),
    )
)
SPACE = space_of(SCHEMA)
_PLACES = {role.name: place(SCHEMA, role.name) for role in SCHEMA.roles}
# Columns of fillings that tell users, names and types apart; 0 = unknown.
USER_FILLER, NAME_FILLER, TYPE_FILLER = _PLACES["user"], _PLACES["name"], _PLACES["type"]
_WORD_FILLER = _PLACES["name parts"]  # first part of the name
REQUEST_FILLER = _PLACES["request"]  # column that tells requested times apart
SHAPE_FILLER = _PLACES["shape"]  # column that tells sizes apart (GPUs, nodes, cores, memory)
_ALIKE = np.array(
    [
        _PLACES[name]
        for name in ("user", "account", "queue", "qos", "name", "type", "request", "shape")
    ]
)


class JobFields(NamedTuple):
    """Fields of one job at its submission; "" and nan = unknown."""

    user: str = ""
    account: str = ""
    queue: str = ""
    qos: str = ""
    name: str = ""
    type: str = ""
    requested_s: float = math.nan  # on the reference GPU, if models differ
    gpus: float = math.nan  # of the whole job, as nodes, cores and memory
    nodes: float = math.nan
    cores: float = math.nan
    memory_mb: float = math.nan
    gpu_memory_mb: float = math.nan  # on each GPU
    priority: float = math.nan  # 0 to 1
    submit_s: float = math.nan  # seconds since midnight of any day, such as Unix time


NUMBERS = JobFields._fields[6:]
_WORDS = JobFields._fields[:6]
_REQUESTED, _GPUS, _SHAPE_END = 0, 1, 6  # places in NUMBERS: the shape is gpus to gpu_memory_mb
_LEVEL_OF = (  # role, place in NUMBERS
    ("requested time", 0),
    ("gpus", 1),
    ("nodes", 2),
    ("cores", 3),
    ("memory", 4),
    ("priority", 6),
    ("hour", 7),
)
_ROLE = {role.name: r for r, role in enumerate(SCHEMA.roles)}
_REQUEST_ROLE, _SHAPE_ROLE = _ROLE["request"], _ROLE["shape"]
UTILISATION_ROLE = _ROLE["utilisation"]
_LEVELS = np.array([(_ROLE[name], place_) for name, place_ in _LEVEL_OF])
_THOUSANDTHS = 1000.0
_UNKNOWN = 1 << 62  # a word too: jobs without a request are alike


@njit
def _whole(value: float) -> int:
    """Return a whole number that represents a value where values only match or differ."""
    return _UNKNOWN if math.isnan(value) else int(value * _THOUSANDTHS)


@njit
def _joined(filling: Words, columns: Counts) -> np.uint64:
    word = np.uint64(0)
    for column in columns:
        word = mixed(word, wide(filling[column]))
    return max(word, np.uint64(1))


@njit_apart
def join(fillings: Words, columns: Counts, out: Words) -> None:
    """Write one key for several columns of fillings [J, F] to out [J]: equal if all of them are."""
    for j in range(len(fillings)):
        out[j] = _joined(fillings[j], columns)


def joined(fillings: Words, columns: Counts) -> Words:
    """Return one key [J] for several columns of fillings [J, F]: equal if all of them are."""
    found = np.zeros(len(fillings), np.uint64)
    join(fillings, columns, found)
    return found


@njit
def alike_key(filling: Words) -> np.uint64:
    """Return a key that jobs share if their words, requested times and sizes are equal.

    filling [F]: fillers of the job's pattern.
    """
    return _joined(filling, _ALIKE)


@njit
def class_of(filling: Words, kind: int, classes: int) -> int:
    """Return the class of a job, 0 to classes - 1, in which its speeds on GPU models are learned.

    A class is a job type, or without one a user and the first part of the name; classes that share
    a number by chance are learned together.

    Args:
        filling: [F] fillers of the job's pattern.
        kind: class of the job by the caller, which is told apart too.
        classes: number of classes; 0 = there are none, and the class is -1.
    """
    if classes == 0:
        return -1
    word = filling[TYPE_FILLER]
    if word == 0:
        word = mixed(filling[USER_FILLER], 1) ^ filling[_WORD_FILLER]
    return int(wide(mixed(word, kind) >> np.uint64(8)) % classes)


@njit_apart
def fill(roles: Records, levels: Counts, numbers: Floats, fillings: Words) -> None:
    """Write the fillers of number fields, the request and the shape (all demands as one word).

    Args:
        roles: [R] ROLE records of the schema.
        levels: [L, 2] for each number field its role and its column in `numbers`.
        numbers: [J, N] fields NUMBERS of each job; nan = unknown.
        fillings: [J, F] receives the fillers.
    """
    request, shape = roles[_REQUEST_ROLE], roles[_SHAPE_ROLE]
    for j in range(len(numbers)):
        fillings[j, request.filler] = number_key(request, _whole(numbers[j, _REQUESTED]))
        known, word = False, shape.seed
        for n in range(_GPUS, _SHAPE_END):
            known |= not math.isnan(numbers[j, n])
            word = mixed(word, _whole(numbers[j, n]))
        fillings[j, shape.filler] = word if known else np.uint64(0)
        for k in range(len(levels)):
            role = roles[levels[k, 0]]
            fillings[j, role.filler] = level_of(role, numbers[j, levels[k, 1]])


def _parts(name: str) -> list[int]:
    """Return keys of the first _PARTS distinct parts of a name: runs of letters or digits."""
    found = dict.fromkeys(re.findall(r"[^\W\d_]+|\d+", name.lower()))
    return [key("name parts", part) for part in list(found)[:_PARTS]]


def _fill_words(fillings: Words, role: str, codes: Codes | Counts, words: Sequence[str]) -> None:
    """Write the fillers of a text field for all jobs; for the job name, also those of its parts.

    Args:
        fillings: [J, F] receives the fillers.
        role: name of the field's role.
        codes: [J] index of each job's text in `words`; -1 = missing.
        words: the distinct texts.
    """
    keys = np.array([*(key(role, word) if word else 0 for word in words), 0], np.uint64)
    fillings[:, _PLACES[role]] = keys[codes]
    if role != "name":
        return
    parts = np.zeros((len(words) + 1, _PARTS), np.uint64)
    for w, word in enumerate(words):
        found = _parts(word)
        parts[w, : len(found)] = found
    first = _PLACES["name parts"]
    fillings[:, first : first + _PARTS] = parts[codes]


def of_history(history: History) -> Words:
    """Return the fillers [J, F] of the patterns of a history's jobs.

    The recorded priority is not used: Slurm records its last value, which depends on the wait.
    """
    fillings = np.zeros((history.rows, SPACE.fillers), np.uint64)
    for role in ("user", "account", "queue", "qos", "name"):
        _fill_words(fillings, role, getattr(history, role), history.tables[role])
    numbers = np.column_stack(
        (
            np.where(history.requested_s > 0, history.requested_s, np.nan),
            np.where(history.gpus < 0, np.nan, history.gpus / WHOLE),
            np.where(history.nodes < 0, np.nan, history.nodes),
            history.cores,
            history.memory_mb,
            history.gpu_memory_mb,
            np.full(history.rows, np.nan),
            history.submit_s + (history.header.origin_unix_s or 0.0),
        )
    )
    fill(SPACE.roles, _LEVELS, numbers, fillings)
    return fillings


def of_jobs(jobs: Records) -> Words:
    """Return the fillers [J, F] of the patterns of JOB records [J].

    Types, users and accounts are represented by their numbers, written as text.
    """
    fillings = np.zeros((len(jobs), SPACE.fillers), np.uint64)
    for role in ("user", "account", "type"):
        numbers, codes = np.unique(jobs[role], return_inverse=True)
        _fill_words(fillings, role, codes, [str(number) for number in numbers])
    gpus = jobs["gpus"]
    numbers = np.column_stack(
        (
            jobs["requested"],
            gpus * jobs["share"] / WHOLE,
            np.full(len(jobs), np.nan),
            gpus * jobs["cores"],
            gpus * jobs["memory"],
            jobs["gpu_memory"],
            jobs["priority"],
            jobs["arrival"],
        )
    )
    fill(SPACE.roles, _LEVELS, numbers, fillings)
    return fillings


def of_one(job: JobFields) -> Words:
    """Return the fillers [F] of the pattern of one job.

    Raises:
        ConfigError: a number is negative or infinite.
    """
    numbers = np.array([job[len(_WORDS) :]], np.float64)
    for name, value in zip(NUMBERS, numbers[0].tolist(), strict=True):
        if not (value >= 0 or math.isnan(value)) or math.isinf(value):
            raise ConfigError(f"a job to be learned or predicted: {name} is {value:g}")
    numbers[0, _REQUESTED] = numbers[0, _REQUESTED] or math.nan  # as in a history: 0 is no request
    filling = np.zeros(SPACE.fillers, np.uint64)
    for role in _WORDS:
        word = getattr(job, role)
        if word:
            filling[_PLACES[role]] = key(role, word)
    parts, first = _parts(job.name), _PLACES["name parts"]
    filling[first : first + len(parts)] = parts
    fill(SPACE.roles, _LEVELS, numbers, filling[None])
    return filling
