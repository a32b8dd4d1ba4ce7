"""Scenarios that replay a small history with recorded starts, on four V100."""

from adlro.config.files import adjusted, load_scenario
from adlro.evaluate.comparison import SeedRuns, summarise
from adlro.workloads.setting import prepare
from tests.comparisons import made_up, policy

# Eight jobs of one GPU, one every 100 s, each 200 s long. They waited 0, 10, 20, … 70 s.
HEAD = "id,submit,start,end,run_s,gpus,queue,requested_s\n"
WAITS = tuple(range(0, 80, 10))


def rows(waits=WAITS, gpus=1, run=200, queue="main", every=100):
    """Lines of a history; a wait of None = the job has no recorded start and end."""
    lines = []
    for i, wait in enumerate(waits):
        submit = 1000 + every * i
        times = ",," if wait is None else f",{submit + wait},{submit + wait + run}"
        lines.append(f"j{i},{submit}{times},{run},{gpus},{queue},600\n")
    return HEAD + "".join(lines)


def scenario(folder, text=None, jobs=4, more="", history=""):
    (folder / "jobs.csv").write_text(rows() if text is None else text)
    (folder / "mine.toml").write_text(
        f'jobs = {jobs}\nload = 0.5\nusers = 5\n{more}\n[history]\nfile = "jobs.csv"\n{history}\n'
        '[cluster]\n[[cluster.nodes]]\nname = "volta"\ngpu = "V100"\ngpus = 4\ncores = 64\n'
        'memory_gb = 64\npartitions = ["main", "long"]\n'
    )
    return load_scenario(folder / "mine.toml")


def at_recorded_load(wanted):
    """The setting at the load that was recorded."""
    tried = prepare(wanted)
    if tried.played.rate <= 0:
        return tried
    return prepare(adjusted(wanted, load=tried.played.rate / tried.capacity_per_s))


def setting(folder, text=None, **options):
    return at_recorded_load(scenario(folder, text, **options))


def summarised(ready, jcts, seeds=2):
    """The comparison of policies with made-up mean JCTs, on the first seeds of a setting."""
    done = [SeedRuns([made_up(s, jct) for jct in jcts.values()], None) for s in range(seeds)]
    return summarise(ready, [policy(name) for name in jcts], range(seeds), done)
