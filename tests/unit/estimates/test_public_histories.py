"""Nothing leaks on public histories: outcomes after a time change nothing that was said before."""

import os
from pathlib import Path

import numpy as np
import pytest

from adlro.estimates import job_table
from adlro.estimates.estimator import DEFAULTS
from adlro.estimates.registry import ESTIMATORS
from adlro.workloads.formats.registry import read

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("ADLRO_SHARED") or ROOT.parent / "shared") / "data"
FILES = ("swf/HPC2N-2002-2-first3170.swf.gz", "mit_supercloud/slurm_9628_jobs.csv.gz")
LEARNERS = [name for name, kind in ESTIMATORS.items() if kind.needs_past]


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("file", FILES)
def test_outcomes_after_a_time_change_nothing_that_was_said_before(file, name):
    history = read(DATA / file)
    rng, end = np.random.default_rng(7), job_table.end_times(history)
    jobs = job_table.table_of(history)._replace(utilisation=rng.random(history.rows))
    now = np.nanmedian(history.submit_s)
    later = ~(end <= now)
    run_s = np.where(later, rng.permutation(history.run_s) * 7 + 1, history.run_s)
    events = job_table.event_order(history.submit_s, np.where(later, end + 1e7, end), run_s)
    used = np.where(later, 1 - jobs.utilisation, jobs.utilisation)
    changed = jobs._replace(**events._asdict(), utilisation=used)
    one, two = (ESTIMATORS[name].create(DEFAULTS).follow(table) for table in (jobs, changed))
    known = history.submit_s <= now
    assert (later & known).sum() > 1
    for before, after in (
        (one.log_s, two.log_s),
        (one.confidence, two.confidence),
        (one.log_quantiles, two.log_quantiles),
    ):
        np.testing.assert_array_equal(after[known], before[known])
    assert (one.log_quantiles[~known] != two.log_quantiles[~known]).any()
