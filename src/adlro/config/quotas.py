"""Quotas of a scenario: shares of the cluster that holders are entitled to, and caps on GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from adlro.model import gpu
from adlro.model.cluster import GpuName, Name
from adlro.model.record import Record

_Gpus = Annotated[int, Field(ge=0, le=1_000_000)]


def by_model(entries: Mapping[str, float], own: Sequence[gpu.GpuModel]) -> dict[str, float]:
    """Return the entries with each key, any name of a GPU model, replaced by the model's name.

    own: models that the cluster defines, or all that it has.
    """
    return {gpu.find(name, own).name: entry for name, entry in entries.items()}


def refuse_twins(key: str, entries: Mapping[str, float], own: Sequence[gpu.GpuModel]) -> None:
    """Raise ValueError for a GPU model that is listed under two of its names."""
    models = [gpu.find(name, own).name for name in entries]
    for model in models:
        if models.count(model) > 1:
            raise ValueError(f"{key}: {model!r} is there twice; remove one")


class Quota(Record):
    """The limits of one holder: an account, a user (numbered from 0), or each user separately."""

    account: Name | None = None
    user: Annotated[int, Field(ge=0)] | None = None
    users: Literal["each"] | None = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None  # entitlement, of the total worth
    caps: dict[GpuName, _Gpus] = Field(default_factory=dict)  # GPU model -> most GPUs at once
    borrow: bool = True  # may exceed the share with GPUs that no entitled holder waits for

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
        return self

    @property
    def holder(self) -> str:
        """The holder in words, such as "user 3", for messages."""
        if self.users is not None:
            return "each user"
        return f"account {self.account!r}" if self.account is not None else f"user {self.user}"


def refuse_quotas(quotas: tuple[Quota, ...], users: int) -> None:
    """Raise ValueError if a user is unknown, a holder is listed twice, or shares exceed 1 in sum.

    Args:
        quotas: all quotas of a scenario.
        users: number of users of the scenario.
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


def refuse_prices(prices: Mapping[str, float], models: Sequence[gpu.GpuModel]) -> None:
    """Raise ValueError if only some of the cluster's models have a price, or one is listed twice.

    Args:
        prices: GPU model -> price.
        models: all GPU models of the cluster.
    """
    refuse_twins("prices", prices, models)
    listed = by_model(prices, models)
    missing = [model.name for model in models if model.name not in listed]
    if listed and missing:
        raise ValueError(
            f"prices: nothing for {', '.join(repr(model) for model in missing)}; "
            "list every model of the cluster"
        )
