"""The card of a learned policy, a JSON file: its network, provenance and hash of its weights."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    PositiveFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from adlro.errors import PolicyError
from adlro.features.observation_kernel import Sizes
from adlro.features.telemetry_kernel import TELEMETRY_FEATURES
from adlro.model.record import Record
from adlro.nets import paper_network
from adlro.nets.q_network import MOST_MEMBERS, MOST_UNITS
from adlro.policies.loading.feature_ranges import FeatureRanges
from adlro.telemetry.normalise import BINS, COUNTS, LEARNED

FORMAT = 1  # increased when older versions cannot read the cards any more

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
Models = Annotated[tuple[Name, ...], Field(max_length=1000)]
Units = Annotated[int, Field(ge=1, le=MOST_UNITS)]
Size = Annotated[int, Field(ge=1, le=100_000)]
Shapes = dict[str, tuple[int, ...]]  # of every array of the .npz file, in order
Count = Annotated[int, Field(ge=0, le=10**15)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Seeds(Record):
    """A range of seeds, from the first to the last, both included."""

    first: Seed
    last: Seed

    @model_validator(mode="after")
    def _in_order(self) -> Seeds:
        if self.last < self.first:
            raise ValueError(f"the last seed, {self.last}, is before the first, {self.first}")
        return self


class Budget(Record):
    """The cost of training a policy: CPU time, labelled states and episodes."""

    cpu_s: Annotated[float, Field(ge=0)]
    labelled_states: Count = 0  # states with a rollout of every choice
    episodes: Count  # runs from an empty cluster to the last completion


class Figure(Record):
    """The mean completion time of a policy on one scenario, versus a rival on the same jobs."""

    scenario: Name
    load: PositiveFloat
    rival: Name = "min-min"  # files of before there were others lack the key
    mean_jct_pct: float  # versus the rival; below 0 = shorter
    ci95: tuple[float, float]
    seeds: Seeds | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Figure:
        if self.ci95[1] < self.ci95[0]:
            raise ValueError("the interval ends before it begins")
        return self


class Provenance(Record):
    """The part of a card that the trainer provides: how a policy was trained, and its results."""

    name: Name
    about: Line
    objective: Line
    family: Line  # the scenarios that it was trained on
    budget: Budget
    seeds: Seeds  # of the training workloads
    selection: tuple[Figure, ...]  # on the seeds by which it was selected: optimistic
    final: tuple[Figure, ...] = ()  # on seeds that were not used for any selection
    date: datetime.date
    # of the features in training; None = not measured, as in old cards
    ranges: FeatureRanges | None = None


class _Written(Provenance):
    """The keys that all card files have: the provenance, versions and hashes."""

    format: Literal[1]
    version: Name  # of the adlro that wrote it
    sha256_weights: Hash  # of the .npz file
    sha256_card: Hash  # of all other keys as canonical JSON


class Card(_Written):
    """The card of a network whose input is the features of a choice or of a job-pool pair."""

    # the policy that uses the weights; old cards lack the key
    policy: Literal["adlro", "adlro-preemptive"] = "adlro"
    features: Features  # its inputs by name, in the order of its weights
    hidden: tuple[Units, Units]
    # networks whose mean decides; files of before there were members lack this and the next two
    members: Annotated[int, Field(strict=True, ge=1, le=MOST_MEMBERS)] = 1
    caution: Annotated[float, Field(ge=0, le=100)] = 0.0  # factor on the members' disagreement
    clamped: Annotated[bool, Field(strict=True)] = False  # whether inputs are clamped
    # GPU models with readings in training; None = it reads no telemetry
    telemetry: Annotated[Models | None, Field(validate_default=True)] = None

    @field_validator("telemetry")
    @classmethod
    def _is_as_features_need_it(cls, models: Models | None, info: ValidationInfo) -> Models | None:
        wanted = set(TELEMETRY_FEATURES).intersection(info.data.get("features", ()))
        if wanted and models is None:
            raise ValueError(f"is not there, but {min(wanted)!r} needs it")
        if models is not None and not wanted:
            raise ValueError("is there, but no feature needs it")
        return models

    @model_validator(mode="after")
    def _has_ranges_of_its_features(self) -> Card:
        if self.ranges is None:
            return self
        for name in sorted(set(self.features).symmetric_difference(self.ranges.features)):
            told = "has no range" if name in self.features else "is no feature of the network"
            raise ValueError(f"ranges: {shortened(name)} {told}")
        return self

    @property
    def shapes(self) -> Shapes:
        """Shapes of all arrays of the .npz file: fields of Network, and telemetry histograms."""
        return self._weights | self._counts

    @property
    def _counts(self) -> Shapes:
        if self.telemetry is None:
            return {}
        seen = (len(self.telemetry), len(LEARNED))
        return dict(zip(COUNTS, ((*seen, BINS), seen), strict=True))

    @property
    def _weights(self) -> Shapes:
        inputs, (first, second), members = len(self.features), self.hidden, self.members
        shapes: Shapes = {
            "residual": (2,),
            "first": (inputs, members * first),
            "first_bias": (members * first,),
            "second": (members * first, second),
            "second_bias": (members * second,),
            "last": (members * second,),
        }
        return shapes | ({"bounds": (2, inputs)} if self.clamped else {})

    @property
    def words(self) -> str:
        """A phrase that describes the size and the inputs of the network."""
        first, second = self.hidden
        text = f"{len(self.features)} features, hidden layers of {first} and {second} units"
        if self.members > 1:
            text = f"{self.members} members; {text}; caution {self.caution:g}"
        if self.clamped:
            text = f"{text}; inputs clamped to their range in training"
        if self.telemetry is None:
            return text
        return f"{text}; reads telemetry, seen of {len(self.telemetry)} GPU models in training"


class PaperCard(_Written):
    """The card of the paper's network, whose weights fit one shape of cluster."""

    policy: Literal["paper-dqn"]
    rows: Size  # nodes
    columns: Size  # most GPUs of any node
    types: Size
    window: Annotated[int, Field(ge=1, le=64)]  # waiting jobs that it may choose from
    gpus: Size
    channels: Annotated[int, Field(ge=0, le=MOST_UNITS)]  # of both convolutions; 0 = none
    hidden: Annotated[tuple[Units, ...], Field(min_length=1, max_length=2)]

    @field_validator("ranges")
    @classmethod
    def _has_no_ranges(cls, ranges: FeatureRanges | None) -> FeatureRanges | None:
        if ranges is not None:
            raise ValueError("are there, but the network has no named features")
        return ranges

    @property
    def sizes(self) -> Sizes:
        """The shape of cluster and window of the queue that the weights fit."""
        return Sizes(self.rows, self.columns, self.types, self.window, self.gpus)

    @property
    def shapes(self) -> Shapes:
        """Shapes of all arrays of the .npz file, by the names in PaperNetwork.arrays."""
        return paper_network.shapes(self.sizes, self.channels, self.hidden)

    @property
    def words(self) -> str:
        """A phrase that describes the layers of the network and the cluster it is for."""
        layers = " and ".join(str(units) for units in self.hidden)
        filters = f"two convolutions of {self.channels} channels, " if self.channels else ""
        return (
            f"{filters}hidden units: {layers}; for {self.rows} nodes of up to {self.columns} GPUs, "
            f"{self.types} job types; chooses from the first {self.window} waiting"
        )


AnyCard = Card | PaperCard


def write(origin: Provenance, **more: object) -> str:
    """Return the text of a card file, given its provenance and, in `more`, its other keys.

    The format and the hash of the card itself are added.
    """
    written = origin.model_dump(mode="json", include=set(Provenance.model_fields))
    if origin.ranges is None:
        del written["ranges"]
    return _signed(written | {"format": FORMAT} | more)


def with_figures(text: bytes, path: Path, final: Sequence[Figure]) -> str:
    """Return the text of a card file with other final figures; only its hash changes beside them.

    Raises:
        PolicyError: the card is invalid.
    """
    parse(text, path)
    figures = [figure.model_dump(mode="json", exclude_none=True) for figure in final]
    return _signed(_json(text, path) | {"final": figures})


def _signed(data: dict[str, Any]) -> str:
    """Return the text of a card file with these keys and, last, the hash of them."""
    data.pop(_OWN_HASH, None)
    data[_OWN_HASH] = _fingerprint(data)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def parse(text: bytes, path: Path) -> AnyCard:
    """Return the card in the content of a card file, after all checks.

    Args:
        text: the content.
        path: path of the file, for messages.

    Raises:
        PolicyError: it is not JSON, has another format, lacks a key, or was changed after it was
            written.
    """
    data = _json(text, path)
    if data.get("format") != FORMAT:
        raise PolicyError(
            f"{path}: is not a card of format {FORMAT}, the one that this adlro reads; "
            "update adlro if a newer one wrote it"
        )
    kind = PaperCard if data.get("policy") == "paper-dqn" else Card
    try:
        card = kind.model_validate(data)
    except ValidationError as exc:
        raise PolicyError(f"{path}: {_one_line(exc)}") from exc
    if _fingerprint(data) != card.sha256_card:
        raise PolicyError(
            f"{path}: was changed after it was written (sha256_card differs); "
            "copy the policy's two files again from their source"
        )
    return card


def shortened(text: str) -> str:
    """Return text from a file for one line of a message: its first 80 characters, escaped."""
    return ascii(text[:80])


def _json(text: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as exc:  # UnicodeDecodeError and absurd numbers too
        raise PolicyError(f"{path}: is not JSON, as a card is; copy it again") from exc
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: is not the card of a learned policy; name another file")
    return data


def _fingerprint(data: dict[str, Any]) -> str:
    """Return the hash of all keys of a card that are present, except the hash itself.

    Absent keys do not count, so a key that a later version adds leaves hashes of older files valid.
    """
    rest = {key: value for key, value in data.items() if key != _OWN_HASH}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _one_line(exc: ValidationError) -> str:
    """Return the first validation error as a line "key: message"."""
    error = exc.errors(include_url=False, include_context=False)[0]
    path = ".".join(str(part) for part in error["loc"])
    key = f"{shortened(path)}: " if path else ""
    if error["type"] == "extra_forbidden":
        return f"{key}unknown key; was the card changed, or written by a newer adlro?"
    message = error["msg"].removeprefix("Value error, ")
    return f"{key}{message[:1].lower()}{message[1:]}; copy the file again"
