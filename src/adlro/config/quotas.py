"""Quotas of a scenario: the share of the cluster that an account or a user may hold at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from adlro.model import gpu
from adlro.model.cluster import GpuName, Name
from adlro.model.record import Record

_Gpus = Annotated[int, Field(ge=0, le=1_000_000)]


def by_model(entries: Mapping[str, float]) -> dict[str, float]:
    """The entries, keyed by the GPU models' names in the catalogue."""
    return {gpu.find(name).name: entry for name, entry in entries.items()}


def _refuse_twins(key: str, entries: Mapping[str, float]) -> None:
    """Raise ValueError for a GPU model that is listed under two of its names."""
    models = [gpu.find(name).name for name in entries]
    for model in models:
        if models.count(model) > 1:
            raise ValueError(f"{key}: {model!r} is there twice; remove one")


class Quota(Record):
    """The limit of one holder: an account, a user (counted from 0), or each user separately."""

    account: Name | None = None
    user: Annotated[int, Field(ge=0)] | None = None
    users: Literal["each"] | None = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None  # of the cluster's worth
    caps: dict[GpuName, _Gpus] = Field(default_factory=dict)  # GPUs of a model at once
    borrow: bool = True  # beyond the share, where nobody waits for what is theirs

    @model_validator(mode="after")
    def _says_something(self) -> Quota:
        holders = [key for key in ("account", "user", "users") if getattr(self, key) is not None]
        if len(holders) != 1:
            said = " and ".join(holders) if holders else "nobody"
            raise ValueError(f"whose quota is it? give one of account, user, users; not {said}")
        if self.share is None and not self.caps:
            raise ValueError(f"nothing is limited for {self.holder}; give a share or caps")
        if self.share is None and not self.borrow:
            raise ValueError(f"borrow = false of {self.holder} needs a share to stay within")
        _refuse_twins("caps", self.caps)
        return self

    @property
    def holder(self) -> str:
        """The holder in words."""
        if self.users is not None:
            return "each user"
        return f"account {self.account!r}" if self.account is not None else f"user {self.user}"


def refuse_quotas(quotas: tuple[Quota, ...], users: int) -> None:
    """Raise ValueError for holders listed twice, or shares that exceed the cluster.

    Args:
        quotas: all of a scenario.
        users: how many it has.
    """
    seen: set[str] = set()
    for i, quota in enumerate(quotas):
        if quota.user is not None and quota.user >= users:
            last = users - 1
            raise ValueError(f"quotas.{i}.user: no user {quota.user}; they count from 0 to {last}")
        if quota.holder in seen:
            raise ValueError(f"quotas.{i}: {quota.holder} has a quota already; join them")
        seen.add(quota.holder)
    if "each user" in seen and any(quota.user is not None for quota in quotas):
        raise ValueError("quotas: users = 'each' gives a user = N a second quota; keep one kind")
    for noun, times in (("account", 1), ("user", 1), ("users", users)):
        total = times * sum(q.share or 0.0 for q in quotas if getattr(q, noun) is not None)
        if total > 1 + 1e-9:
            whose = "accounts'" if noun == "account" else "users'"
            raise ValueError(
                f"quotas: the {whose} shares add up to {total:.6g} of the cluster; "
                "lower them to 1 in all"
            )


def refuse_prices(prices: Mapping[str, float], models: list[str]) -> None:
    """Raise ValueError for models (of the cluster) without a price, if there are prices at all."""
    _refuse_twins("prices", prices)
    listed = by_model(prices)
    missing = [model for model in models if model not in listed]
    if listed and missing:
        raise ValueError(
            f"prices: nothing for {', '.join(repr(model) for model in missing)}; "
            "list every model of the cluster"
        )
