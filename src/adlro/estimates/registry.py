"""All estimators, by the name that the option `--estimates` takes."""

from __future__ import annotations

from adlro.config.scenario import EstimateSource
from adlro.estimates.estimator import Estimator
from adlro.estimates.last_two import LastTwo
from adlro.estimates.last_two_alike import LastTwoAlike
from adlro.estimates.memory import Memory
from adlro.estimates.noisy import Noisy
from adlro.estimates.oracle import Oracle
from adlro.estimates.request import Request
from adlro.estimates.user_mean import UserMean

ESTIMATORS: dict[EstimateSource, type[Estimator]] = {
    "memory": Memory,
    "request": Request,
    "last-two": LastTwo,
    "last-two-alike": LastTwoAlike,
    "user-mean": UserMean,
    "oracle": Oracle,
    "noisy": Noisy,
}
