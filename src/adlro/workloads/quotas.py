"""Quotas and GPU prices of a scenario as arrays, and the worth of a GPU of each model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from adlro.config.quotas import Quota, by_model
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.model import gpu
from adlro.model.cluster import Layout
from adlro.model.state import QUOTA, WHOLE, Counts, Floats, Mask, Records
from adlro.workloads import capacity


class Quotas(NamedTuple):
    """Quotas as arrays, and the account or user that holds each.

    Dimensions: A accounts, U users, H quotas, M GPU models.
    """

    of_account: Counts  # [A] number of the quota that each holds, -1 = none
    of_user: Counts  # [U] number of the quota, -1 = none
    quotas: Records  # [H] QUOTA
    caps: Counts  # [H, M] most GPUs of each model, -1 = any number

    def holders(self, jobs: Records) -> Counts:
        """Return the quotas [J, 2] of each job's account and of its user; -1 = none."""
        return np.stack((self.of_account[jobs["account"]], self.of_user[jobs["user"]]), axis=1)


def prices(scenario: Scenario, layout: Layout, speeds: Floats) -> Floats:
    """Return the price [M] of one GPU of each model for an hour.

    Without a price list, the price is the mean speed of the scenario's types on the model (V100 =
    1), weighted by the types' shares of the jobs. speeds [T, M]: speed of each type on each model.
    """
    if scenario.prices:
        listed = by_model(scenario.prices, layout.models)
        return np.array([listed[model.name] for model in layout.models])
    share = np.array([job_type.share for job_type in scenario.types])
    mean: Floats = share @ speeds / share.sum()
    return mean


def worth(scenario: Scenario, layout: Layout, speeds: Floats) -> Floats:
    """Return the worth [M] of a GPU of each model, relative to the reference GPU.

    With a price list it is the model's price / the price of the reference GPU, or / the price of
    the cluster's first model if the list lacks the reference GPU. Without a list it is the mean
    speed, as in `prices`.
    """
    costs = prices(scenario, layout, speeds)
    if not scenario.prices:
        return costs
    listed = by_model(scenario.prices, layout.models)
    relative: Floats = costs / listed.get(gpu.REFERENCE, costs[0])
    return relative


def _each(scenario: Scenario) -> Iterator[Quota]:
    """Yield all quotas, with each quota for every user replaced by one quota for each user."""
    for quota in scenario.quotas:
        if quota.users is None:
            yield quota
            continue
        for user in range(scenario.users):
            yield quota.model_copy(update={"user": user, "users": None})


def quotas(scenario: Scenario, layout: Layout) -> Quotas:
    """Return the quotas of a scenario as arrays; the layout's pools must have their `worth` set."""
    every = list(_each(scenario))
    total = float((layout.pools["size"] * layout.pools["worth"]).sum())
    names = [model.name for model in layout.models]
    made = Quotas(
        np.full(len(scenario.accounts), -1),
        np.full(scenario.users, -1),
        np.zeros(len(every), QUOTA),
        np.full((len(every), len(names)), -1),
    )
    for h, quota in enumerate(every):
        if quota.account is not None:
            made.of_account[scenario.accounts.index(quota.account)] = h
        if quota.user is not None:
            made.of_user[quota.user] = h
        entitled = np.inf if quota.share is None else quota.share * total
        made.quotas[h] = (entitled, quota.borrow)
        for name, most in by_model(quota.caps, layout.models).items():
            made.caps[h, names.index(name)] = most
    return made


def _most(quota: Quota | None, layout: Layout) -> Floats:
    """Return the most GPUs [P] of each pool's model that a quota's caps allow; inf = no cap."""
    most = np.full(len(layout.pools), np.inf)
    if quota is not None:
        caps = by_model(quota.caps, layout.models)
        for p, pool in enumerate(layout.pools):
            most[p] = caps.get(layout.models[pool["model"]].name, np.inf)
    return most


def _in_words(quota: Quota, layout: Layout) -> str:
    caps = by_model(quota.caps, layout.models).items()
    return f"{quota.holder} at most " + ", ".join(f"{most:g} {name}" for name, most in caps)


def refuse_homeless(scenario: Scenario, layout: Layout, lists: Mask) -> None:
    """Raise ConfigError if a job that can be drawn fits no pool under the caps of the quotas.

    Args:
        scenario: with its quotas.
        layout: the empty cluster.
        lists: [T, P] pools that each type's lists of GPU models and partitions permit.
    """
    capped = [quota for quota in scenario.quotas if quota.caps]
    accounts = [None, *(quota for quota in capped if quota.account is not None)]
    users = [None, *(quota for quota in capped if quota.account is None)]
    pairs = [(one, other) for one in accounts for other in users if one or other]
    for t, job_type in enumerate(scenario.types):
        _, job = capacity.drawable(job_type)
        stays = np.broadcast_to(lists[t] & (layout.lasting > 0), (len(job), len(layout.pools)))
        allowed = capacity.may_run(job, stays, layout)
        size = (job["gpus"] * (job["share"] / WHOLE))[:, None]
        for one, other in pairs:
            most = np.minimum(_most(one, layout), _most(other, layout))
            for lost in job[~(allowed & (size <= most)).any(axis=1)][:1]:
                both = (quota for quota in (one, other) if quota is not None)
                said = "; ".join(_in_words(quota, layout) for quota in both)
                raise ConfigError(
                    f"scenario {scenario.name}: types.{job_type.name}: a job of {lost['gpus']} "
                    f"GPUs could run nowhere under the caps of quotas ({said}); raise a cap"
                )
