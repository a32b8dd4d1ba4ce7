"""The histogram behind the running median."""

import numpy as np

from adlro.estimates import running_median_kernel as running_median


def test_the_histogram_takes_run_times_of_any_length():
    histogram = np.zeros(running_median.BINS)
    for log_s in (-5.0, 100.0, 100.0):
        running_median.count_in(histogram, log_s)
    assert histogram[0] == 1
    assert histogram[-1] == 2
    assert running_median.median_of(histogram) > 23
