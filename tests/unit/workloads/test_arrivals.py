"""Arrival processes: the rate that was asked for, and the shape of each."""

import numpy as np
import pytest

from adlro.config.files import find_scenario
from adlro.config.scenario import Bursty, Diurnal, Poisson, Surge
from adlro.workloads import arrivals

RATE = 0.02  # arrivals a second
DAY = 86_400.0
PROCESSES = {
    "poisson": Poisson(),
    "bursty": Bursty(process="bursty", peak=3, share=0.2, length_s=3600),
    "all in bursts": Bursty(process="bursty", peak=5, share=0.2, length_s=360),
    "diurnal": Diurnal(process="diurnal", amplitude=0.6, period_s=DAY),
    "dark nights": Diurnal(process="diurnal", amplitude=1, period_s=DAY),
}
SURGE = Surge(process="surge", type="ml", share=0.25, at=0.4, length_s=1800)


def draw(process, jobs, rate=RATE, seed=0):
    scenario = find_scenario("paper16").model_copy(update={"arrivals": process, "jobs": jobs})
    return arrivals.draw(scenario, rate, np.random.default_rng(seed))


def counts(times, width):
    """Arrivals in each whole stretch of that many seconds."""
    stretches = int(times[-1] // width)
    return np.histogram(times, stretches, (0, stretches * width))[0]


@pytest.mark.parametrize("name", PROCESSES)
def test_the_mean_rate_is_the_one_asked_for(name):
    times, _ = draw(PROCESSES[name], 200_000)
    assert len(times) / times[-1] == pytest.approx(RATE, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("process", [*PROCESSES.values(), SURGE])
def test_arrivals_are_sorted_finite_and_not_before_the_start(process, seed):
    times, forced = draw(process, 500, seed=seed)
    assert len(times) == len(forced) == 500
    assert times[0] >= 0
    assert np.isfinite(times).all()
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("name", PROCESSES)
def test_only_a_surge_forces_the_type_of_a_job(name):
    _, forced = draw(PROCESSES[name], 500)
    assert set(forced.tolist()) == {-1}


@pytest.mark.parametrize("process", [*PROCESSES.values(), SURGE])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_handful_of_jobs_arrives_as_well(process, jobs):
    assert np.isfinite(draw(process, jobs)[0]).all()


def test_poisson_arrivals_know_nothing_of_each_other():
    # Gaps are exponential: sd = mean, and P(gap > mean) = 1/e. Counts: variance = mean.
    times, _ = draw(Poisson(), 60_000)
    gaps = np.diff(times)
    hours = counts(times, 3600)
    assert gaps.std() == pytest.approx(1 / RATE, rel=0.03)
    assert (gaps > 1 / RATE).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert hours.var() / hours.mean() == pytest.approx(1, abs=0.15)
    assert np.corrcoef(gaps[1:], gaps[:-1])[0, 1] == pytest.approx(0, abs=0.02)


def test_bursts_spread_the_counts_far_more_than_poisson_does():
    # In a burst 3 x 0.02 x 3600 = 216 an hour, else 36: variance / mean is far above 1.
    hours = counts(draw(PROCESSES["bursty"], 60_000)[0], 3600)
    assert hours.var() / hours.mean() > 20


def test_a_burst_has_the_peak_rate_for_its_share_of_the_time():
    # Bursts of 100 min on average, so that most minutes are of one kind: 60 x 0.2 x 3 = 36 arrivals
    # in a burst and 60 x 0.2 x (1 - 0.6) / 0.8 = 6 outside.
    process = Bursty(process="bursty", peak=3, share=0.2, length_s=6000)
    minutes = counts(draw(process, 2_000_000, rate=0.2)[0], 60)
    in_burst = minutes > 18
    assert in_burst.mean() == pytest.approx(0.2, abs=0.03)
    assert minutes[in_burst].mean() == pytest.approx(36, rel=0.03)
    assert minutes[~in_burst].mean() == pytest.approx(6, rel=0.03)


def test_bursts_have_the_asked_mean_length():
    # All arrivals fall into bursts of 1 h on average: gaps over 10 min (600 x 0.1 x 5 = 300
    # arrivals would fall there) can only be pauses, of 4 h on average.
    process = Bursty(process="bursty", peak=5, share=0.2, length_s=3600)
    gaps = np.diff(draw(process, 1_000_000, rate=0.1)[0])
    pauses = gaps[gaps > 600]
    assert pauses.mean() - 600 == pytest.approx(4 * 3600, rel=0.1)  # the rest has no memory


@pytest.mark.parametrize(
    ("amplitude", "most", "least"), [(0.6, 1.6, 0.4), (1, 2, 0), (0.2, 1.2, 0.8)]
)
def test_a_day_has_its_peak_after_six_hours_and_its_trough_after_eighteen(amplitude, most, least):
    process = Diurnal(process="diurnal", amplitude=amplitude, period_s=DAY)
    times, _ = draw(process, 200_000)
    days = int(times[-1] // DAY)
    by_hour = np.bincount((times[times < days * DAY] % DAY // 3600).astype(int), minlength=24)
    relative = by_hour / (RATE * 3600 * days)
    assert relative[5:7].mean() == pytest.approx(most, abs=0.05)
    assert relative[17:19].mean() == pytest.approx(least, abs=0.05)


def test_a_surge_is_a_wave_of_one_type_on_top_of_the_usual_arrivals():
    # 4000 jobs: 1000 of the wave within 1800 s from 40 % of 3000 / 0.02 = 150,000 s on.
    times, forced = draw(SURGE, 4000)
    wave, usual = times[forced >= 0], times[forced < 0]
    assert set(forced[forced >= 0].tolist()) == {1}  # ml is the second type
    assert len(wave) == 1000
    assert 60_000 <= wave.min() < 60_010
    assert 61_790 < wave.max() <= 61_800
    assert len(usual) / usual[-1] == pytest.approx(RATE, rel=0.06)


def test_a_wave_is_spread_evenly_over_its_window():
    wave = draw(SURGE, 40_000)[0][draw(SURGE, 40_000)[1] >= 0]
    window = np.quantile(wave - 600_000, [0.25, 0.5, 0.75])  # 40 % of 30,000 / 0.02 s
    assert window == pytest.approx([450, 900, 1350], abs=30)


def test_a_wave_never_takes_the_last_of_the_usual_jobs():
    _, forced = draw(SURGE.model_copy(update={"share": 0.99}), 2)
    assert sorted(forced.tolist()) == [-1, 1]


def test_the_same_generator_draws_the_same_arrivals():
    assert (
        draw(PROCESSES["bursty"], 500)[0].tobytes() == draw(PROCESSES["bursty"], 500)[0].tobytes()
    )
