"""The card of a learned policy: what it is, how it came to be, and which weights belong to it."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveFloat, ValidationError, model_validator

from adlro.encode.network import MOST_UNITS
from adlro.errors import PolicyError
from adlro.model.record import Record

FORMAT = 1  # raised when an older adlro could no longer read what is written

_OWN_HASH = "sha256_card"


def _refuse_unprintable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that cannot be printed")
    return text


def _refuse_twice(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a name is there twice")
    return names


Line = Annotated[str, Field(max_length=2000), AfterValidator(_refuse_unprintable)]
Name = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_refuse_unprintable)]
Features = Annotated[tuple[Name, ...], Field(max_length=1000), AfterValidator(_refuse_twice)]
Units = Annotated[int, Field(ge=1, le=MOST_UNITS)]
Count = Annotated[int, Field(ge=0, le=10**15)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Seeds(Record):
    """Seeds from the first to the last, both included."""

    first: Seed
    last: Seed

    @model_validator(mode="after")
    def _in_order(self) -> Seeds:
        if self.last < self.first:
            raise ValueError(f"the last seed, {self.last}, is before the first, {self.first}")
        return self


class Budget(Record):
    """What the training cost."""

    cpu_s: Annotated[float, Field(ge=0)]
    labelled_states: Count  # states at which every candidate was played to its end
    episodes: Count  # runs, from an empty cluster to the last job


class Figure(Record):
    """How a policy did on one scenario, by pairs of runs on the same jobs."""

    scenario: Name
    load: PositiveFloat
    mean_jct_pct: float  # versus min-min; below 0 = shorter
    ci95: tuple[float, float]
    seeds: Seeds | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Figure:
        if self.ci95[1] < self.ci95[0]:
            raise ValueError("the interval ends before it begins")
        return self


class Origin(Record):
    """What whoever trained a policy tells of it."""

    name: Name
    about: Line
    objective: Line
    family: Line  # the scenarios that it was trained on
    budget: Budget
    seeds: Seeds  # that training drew jobs from
    selection: tuple[Figure, ...]  # on the seeds by which it was chosen: flattering
    final: tuple[Figure, ...] = ()  # on seeds that nothing was chosen by
    date: datetime.date


class Card(Origin):
    """A card file: the origin, and what follows from the weights."""

    format: Literal[1]
    version: Name  # of the adlro that wrote it
    features: Features  # what the encoder builds for it, by name, in the order of its weights
    hidden: tuple[Units, Units]
    sha256_weights: Hash  # of the .npz file
    sha256_card: Hash  # of all other keys as canonical JSON


def write(origin: Origin, **more: object) -> str:
    """The text of a card file: an origin and all other keys but the card's own hash."""
    data = origin.model_dump(mode="json") | {"format": FORMAT} | more
    data[_OWN_HASH] = _fingerprint(data)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def parse(text: bytes, path: Path) -> Card:
    """Check the content of a card file.

    Args:
        text: the content.
        path: of the file, for messages.

    Raises:
        PolicyError: it is not JSON, has another format, does not say what a card must, or was
            changed after it was written.
    """
    data = _json(text, path)
    if data.get("format") != FORMAT:
        raise PolicyError(
            f"{path}: is not a card of format {FORMAT}, the one that this adlro reads; "
            "update adlro if a newer one wrote it"
        )
    try:
        card = Card.model_validate(data)
    except ValidationError as exc:
        raise PolicyError(f"{path}: {_one_line(exc)}") from exc
    if _fingerprint(data) != card.sha256_card:
        raise PolicyError(
            f"{path}: was changed after it was written (sha256_card differs); "
            "take the policy's two files anew from where they came from"
        )
    return card


def shortened(text: str) -> str:
    """A stranger's words, fit for one line of a message."""
    return ascii(text[:80])


def _json(text: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:  # UnicodeDecodeError and absurd numbers too
        raise PolicyError(
            f"{path}: is not JSON; the card of a learned policy is, take it anew"
        ) from exc
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: is not the card of a learned policy; name another file")
    return data


def _fingerprint(data: dict[str, Any]) -> str:
    """By content: a key that a later version adds does not change it for older files."""
    rest = {key: value for key, value in data.items() if key != _OWN_HASH}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _one_line(exc: ValidationError) -> str:
    """The first thing that is wrong: key, what is wrong."""
    error = exc.errors(include_url=False, include_context=False)[0]
    key = shortened(".".join(str(part) for part in error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key; was the card changed, or written by a newer adlro?"
    message = error["msg"].removeprefix("Value error, ")
    return f"{key}: {message[:1].lower()}{message[1:]}; take the file anew"
