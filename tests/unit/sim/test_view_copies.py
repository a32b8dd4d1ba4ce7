"""Views of policies in plain Python: no array in them leads to future jobs or to the world."""

import numpy as np

from adlro.model.view import View
from adlro.policies import registry
from adlro.sim import simulator
from adlro.sim.world import view_of
from tests.worlds import build, fails, is_repaired, job, nodes, play

HONEST = """
def decide(view, params, memory, out):
    if len(view.queue) == 0 or view.pools[0].free == 0:
        return 0
    out[0].kind, out[0].job, out[0].pool = 0, view.queue[0].job, 0
    return 1
"""

CHEATING = """
import numpy as np

WRITES = True
CAUGHT = {"bases": 0, "future": 0, "written": 0}


def parts(array):
    yield from (array, array[:1], array.view(np.ndarray))
    yield from (array[name] for name in array.dtype.names or ())


def bases(array):
    for part in parts(array):
        while isinstance(part.base, np.ndarray):
            part = part.base
            yield part


def is_later(rows, arrived):
    return ((rows >= arrived) & (rows < 1000)).any()


def has_future(name, base, arrived):  # 7f is what `spoil` writes
    if name in ("jobs", "est"):
        return base.ndim > 0 and base[arrived:].tobytes().strip(b"\\0\\x7f") != b""
    if name in ("queue", "running", "gpus"):
        return base.dtype.names is not None and is_later(base["job"], arrived)
    return name == "recent" and is_later(base, arrived)


def spoil(base):
    try:
        base.flags.writeable = True
    except ValueError:
        return
    base[...] = np.frombuffer(b"\\x7f" * base.dtype.itemsize, base.dtype)
    CAUGHT["written"] += 1


def decide(view, params, memory, out):
    can_start = len(view.queue) > 0 and view.pools[0].free > 0
    oldest = view.queue[0].job if can_start else -1
    arrays = [(name, part) for name, part in view._asdict().items() if np.ndim(part) > 0]
    found = [(name, base) for name, part in arrays for base in bases(part)]
    CAUGHT["bases"] += len(found)
    CAUGHT["future"] += sum(bool(has_future(*each, view.arrived)) for each in found)
    for _, base in found:
        if WRITES:
            spoil(base)
    out[0].kind, out[0].job, out[0].pool = 0, oldest, 0
    return int(can_start)
"""


def small_world():
    """Jobs that arrive one after the other, one of them a slice; a node fails in between."""
    times, shares = (0, 1, 5, 40, 41), (1000, 500, 1000, 1000, 1000)
    jobs = [job(t, 30, 99, share=share) for t, share in zip(times, shares, strict=True)]
    events = [fails(8, 1), is_repaired(12, 1)]
    return build([nodes("V100", 1, 2), nodes("T4")], jobs, events=events)


def played(folder, text):
    """Run of a user's policy on the small world, and the counts of what the policy found."""
    (folder / "own.py").write_text(text)
    world = small_world()
    policy = registry.load(str(folder / "own.py"), world.setting)
    return play(world, policy), policy.decide.__globals__.get("CAUGHT")


def test_no_array_leads_to_the_future_or_to_the_world(tmp_path):
    honest, _ = played(tmp_path, HONEST)
    cheating, caught = played(tmp_path, CHEATING)
    assert caught["future"] == 0
    assert min(caught["bases"], caught["written"]) > 0
    assert cheating.outcome.tobytes() == honest.outcome.tobytes()
    assert cheating.totals.tobytes() == honest.totals.tobytes()
    assert cheating.gpus.tobytes() == honest.gpus.tobytes()
    assert cheating.spans.tobytes() == honest.spans.tobytes()


class Careless:
    """A variant of `ViewCopies` that returns the arrays of the world itself, read-only."""

    def __init__(self, world):
        self.world = world

    def view(self):
        world = self.world._replace(totals=self.world.totals.view(np.recarray))
        seen = [np.asarray(part) for part in view_of.py_func(world)]
        rows = [part.view(np.recarray) if part.dtype.names else part.view() for part in seen]
        for part in rows:
            part.flags.writeable = False
        return View(*(part if part.ndim > 0 else part.item() for part in rows))


def test_the_same_cheat_finds_the_future_in_views_of_the_worlds_own_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(simulator, "ViewCopies", Careless)
    _, caught = played(tmp_path, CHEATING.replace("WRITES = True", "WRITES = False"))
    assert caught["future"] > 0


def test_a_view_stored_by_a_policy_does_not_change():
    # Job 0 waits and runs, others come: the first view still shows it alone in the queue.
    views = []

    class Keeping:
        name, params, memory = "keeping", np.zeros(0), 0

        def decide(self, view, params, memory, out):
            views.append((view, [np.asarray(part).tobytes() for part in view]))
            started = len(view.queue) > 0 and view.pools[0].free > 0
            out[0].kind, out[0].job, out[0].pool = 0, view.queue[0].job if started else -1, 0
            return int(started)

    play(small_world(), Keeping())
    assert len(views) > 8
    for view, before in views:
        assert [np.asarray(part).tobytes() for part in view] == before
