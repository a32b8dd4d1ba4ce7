"""Divides a history by its jobs: the first part trains, the next one selects, the last is held out.

What trains and what selects is read from files of its own, which hold nothing that came later. So
the load, the capacity, the longest request and the estimates of a part cannot depend on later jobs.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.errors import ConfigError
from adlro.evaluate.variants import Windows, restricted
from adlro.files import write_bytes
from adlro.model.history import WORDS, History
from adlro.model.state import Counts
from adlro.workloads import history_file
from adlro.workloads.formats import npz
from adlro.workloads.history_scenario import recorded_load
from adlro.workloads.setting import Setting, prepare

SELECTED, HELD_OUT = 0.2, 0.3  # shares of the jobs
SMALLEST = 50  # jobs of a window
FEWEST, USUAL, MOST = 5, 12, 60  # windows of the held-out part
RELATED = 3_000  # jobs of which relatives are made: each learns its estimates anew
_NEAR = 1.25  # factor between loads below which the scenario's is taken for the recorded one


class Cut(NamedTuple):
    """Where a history of K playable jobs is divided, and the windows that its parts are played in.

    The first `first` jobs train, those up to `last` select, the others are held out.
    """

    rows: Counts  # [K] of the history, in the order of arrival
    first: int
    last: int
    window: int  # jobs of a window

    @property
    def held_out(self) -> int:
        """Number of held-out jobs."""
        return len(self.rows) - self.last


def needed() -> int:
    """Return the number of playable jobs below which a history is too short."""
    return math.ceil(FEWEST * SMALLEST / HELD_OUT)


def cut_of(scenario: Scenario) -> Cut:
    """Divide the history of a scenario.

    Windows have as many jobs as the scenario, fewer where there would be less than USUAL of the
    held-out jobs, and at least SMALLEST.

    Raises:
        ConfigError: the history cannot be played, or is too short.
    """
    played = prepare(scenario).played
    assert played is not None
    count = len(played.rows)
    held_out = math.floor(HELD_OUT * count)
    if held_out < FEWEST * SMALLEST:
        raise ConfigError(
            f"{scenario.name}: fine-tuning needs {needed():,} jobs that can be played, of which "
            f"the last {100 * HELD_OUT:.0f} % are held out, and the history has {count:,}; bring a "
            "longer one, or say --from nothing"
        )
    window = max(min(scenario.jobs, held_out // USUAL), SMALLEST)
    last = count - held_out
    return Cut(played.rows, last - math.floor(SELECTED * count), last, window)


def training_part(scenario: Scenario, cut: Cut, folder: Path, begin: int = 0) -> Scenario:
    """Return the scenario that plays windows of the training part, read from a file in `folder`.

    begin: number of its first job.
    """
    part = _part(scenario, cut, (begin, cut.first), folder)
    return adjusted(part, load=_load(scenario, prepare(part)))


def recent_part(scenario: Scenario, cut: Cut, folder: Path) -> Scenario:
    """Return the scenario that plays the last RELATED jobs of the training part at most."""
    return training_part(scenario, cut, folder, max(cut.first - RELATED, 0))


def selection_part(scenario: Scenario, cut: Cut, folder: Path) -> Setting:
    """Return the setting of the selection part's windows, read from a file in `folder`.

    Its estimates are learned from the training part, too.
    """
    earlier = prepare(_part(scenario, cut, (0, cut.last), folder))
    return _windows(earlier, cut.first, cut.window, _load(scenario, earlier))


def held_out_part(scenario: Scenario, cut: Cut) -> Setting:
    """Return the setting of the held-out part's windows, as `adlro compare` would play them."""
    return _windows(prepare(scenario), cut.last, cut.window, scenario.load)


def count_windows(setting: Setting) -> int:
    """Return the number of disjoint windows of a part; window k is seed k of its setting."""
    assert setting.played is not None
    return min(len(setting.played.rows) // setting.scenario.jobs, MOST)


def notes_on(scenario: Scenario, cut: Cut) -> list[str]:
    """Return what the jobs that are trained and selected on lack, as sentences."""
    assert scenario.history is not None
    history = history_file.history_of(scenario.history).take(cut.rows[: cut.last])
    found = []
    if len(np.unique(history.user)) == 1:
        found.append("all jobs are of one user, or of unknown ones: nothing tells users apart")
    if np.ptp(history.run_s) == 0:
        found.append(
            f"all run times are {history.run_s[0]:,.0f} s: the policy learns nothing about sizes"
        )
    return found


def _load(scenario: Scenario, part: Setting) -> float:
    """Return the load of an early part: the recorded one, unless the scenario's is another.

    `adlro trace scenario` writes the load of the whole history, which includes the held-out jobs.
    """
    own = recorded_load(part)
    return own if own > 0 and own / _NEAR <= scenario.load <= own * _NEAR else scenario.load


def _part(scenario: Scenario, cut: Cut, span: tuple[int, int], folder: Path) -> Scenario:
    """Return the scenario that plays a span of the jobs: from the first number up to the last.

    Its history holds nothing that came later; what came before is left out unless the span begins
    with the first job.
    """
    assert scenario.history is not None
    history = history_file.history_of(scenario.history)
    (begin, end), ready = span, history.ready_s()
    is_kept = ready < ready[cut.rows[end]]  # also jobs that are not played: estimators learn them
    if begin:
        is_kept &= ready >= ready[cut.rows[begin]]
    is_kept[cut.rows] = False
    is_kept[cut.rows[begin:end]] = True
    file = (folder / f"part-{begin}-{end}.npz").resolve()
    data = npz.pack(_only(history, np.flatnonzero(is_kept)))
    if not file.exists() or file.read_bytes() != data:  # a new file would be prepared again
        write_bytes(file, data)
    recorded = {"file": str(file), "format": "", "columns": {}, "lenient": False}
    changed = scenario.history.model_copy(update=recorded).model_dump()
    return adjusted(scenario, jobs=cut.window, history=changed)


def _only(history: History, rows: Counts) -> History:
    """Return a history of some rows, whose codes and words do not depend on the other rows.

    A table that other rows have words for keeps one, since an empty table means that the file lacks
    the column.
    """
    found = history.take(rows)
    tables: dict[str, tuple[str, ...]] = {}
    codes: dict[str, Any] = {}  # column -> codes of its words
    for column in WORDS:
        used, first, of = np.unique(getattr(found, column), return_index=True, return_inverse=True)
        order = np.argsort(first)
        order = order[used[order] >= 0]
        number = np.full(len(used), -1, np.int32)
        number[order] = np.arange(len(order))
        codes[column] = number[of.ravel()]
        words = history.tables[column]
        tables[column] = tuple(words[code] for code in used[order]) or words[:1]
    ids = found.id or tuple(map(str, rows.tolist()))  # types are drawn by a hash of them
    return found._replace(id=ids, tables=tables, **codes)


def _windows(setting: Setting, begin: int, window: int, load: float) -> Setting:
    """Return a setting that plays the jobs from number `begin` on, in up to MOST disjoint windows.

    load: of all jobs of the setting; arrivals of the part are stretched alike.
    """
    assert setting.played is not None
    rows, own = setting.played.rows[begin:], recorded_load(setting)
    count = min(len(rows) // window, MOST)
    stride = (len(rows) - window) // (count - 1)
    windows = Windows(window, count, 0, stride, range(count))
    part = restricted(setting, rows, windows, load / own if own > 0 else 1.0)
    measure = setting.scenario.measure.model_dump()
    return part._replace(scenario=adjusted(part.scenario, measure=measure))
