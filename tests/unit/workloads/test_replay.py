"""A scenario that plays a history: which jobs, when, of what type, and what was filled in."""

import numpy as np
import pytest

from adlro.config.files import adjusted, load_scenario
from adlro.errors import ConfigError
from adlro.workloads.generate import generate
from adlro.workloads.replay import windows
from adlro.workloads.setting import prepare
from tests.hidden import assert_hides_the_truth

# Six jobs, one every 100 s; 4 V100 and 4 T4.
JOBS = """id,submit_time,run_s,gpus,user,queue,name,gpu_model,cores,memory_mb,requested_s
a,1000,60,1,ann,short,bert-1,V100,4,2048,100
b,1100,120,2,bob,long,lammps,V100,,,
c,1200,240,4,ann,long,BERT-2,T4,8,100,900
d,1300,30,0.5,ann,short,etl,,2,10,60
e,1400,0,1,ann,short,etl,,2,10,60
f,1500,300,1,cat,short,etl,,2,10,600
"""
CLUSTER = """
[cluster]
[[cluster.nodes]]
name = "volta"
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 64
[[cluster.nodes]]
name = "tee"
gpu = "T4"
gpus = 4
cores = 64
memory_gb = 64
"""
TYPES = """
[[types]]
name = "ml"
share = 1
size = { median_s = 1 }
speed = { V100 = 1.0, T4 = 0.5 }
[[types]]
name = "other"
share = 1
size = { median_s = 1 }
speed = { V100 = 1.0, T4 = 0.25 }
"""


def scenario(folder, history="", more="", jobs=6, rows=JOBS, types=""):
    """The scenario of such a file; `history` = more keys of its table, `more` = of the scenario."""
    (folder / "jobs.csv").write_text(rows)
    head = f"jobs = {jobs}\nusers = 5\n{more}\n"
    text = f'{head}[history]\nfile = "jobs.csv"\n{history}\n{CLUSTER}{types}'
    path = folder / "mine.toml"
    path.write_text(text)
    return load_scenario(path)


def recorded(wanted):
    """The setting at the load that was recorded."""
    tried = prepare(adjusted(wanted, load=1.0))
    return prepare(adjusted(wanted, load=tried.played.rate / tried.capacity_per_s))


def test_the_jobs_are_those_of_the_history_at_their_own_times(tmp_path):
    setting = recorded(scenario(tmp_path, more='estimates = "oracle"'))
    workload = generate(setting, 0)
    jobs = workload.jobs
    np.testing.assert_allclose(jobs["arrival"], [0, 100, 200, 300, 400, 500], rtol=1e-12)
    assert jobs["gpus"].tolist() == [1, 2, 4, 1, 1, 1]
    assert jobs["share"].tolist() == [1000, 1000, 1000, 500, 1000, 1000]
    assert jobs["cores"].tolist() == [4, 1, 2, 2, 2, 2]  # for each GPU; b does not say: 1
    assert jobs["memory"].tolist() == [2048, 0, 25, 10, 10, 10]
    assert jobs["requested"].tolist() == [100, 300, 900, 60, 60, 600]  # b: the longest run, 300 s
    assert jobs["user"].tolist() == [0, 1, 0, 0, 0, 2]
    # All models alike, and the job that ran for 0 s is played as 1 s.
    np.testing.assert_array_equal(workload.seconds[:, 0], [60, 120, 240, 30, 1, 300])
    np.testing.assert_array_equal(workload.seconds[:, 1], workload.seconds[:, 0])
    np.testing.assert_array_equal(workload.est, workload.seconds)
    assert workload.allowed.all()


def test_a_gpus_part_of_what_a_job_needs_is_rounded_up(tmp_path):
    rows = JOBS.replace("b,1100,120,2,bob,long,lammps,V100,,,", "b,1100,120,2,bob,long,x,V100,5,7,")
    jobs = generate(recorded(scenario(tmp_path, rows=rows)), 0).jobs
    assert (jobs["cores"][1], jobs["memory"][1]) == (3, 4)  # 5 cores and 7 MB on two GPUs


def test_what_was_filled_in_is_said(tmp_path):
    filled = recorded(scenario(tmp_path)).filled
    assert "1 of 6 jobs: cores = 1 for each GPU" in filled
    assert "all jobs: GPU memory MB = 0 for each GPU" in filled
    longest = "1 of 6 jobs: requested time = 300 s (the longest run of the file)"
    assert longest in filled
    assert "all jobs: priority = 0.5" in filled
    assert "all jobs: no speeds are known: all GPU models are alike" in filled
    assert "1 of 6 jobs: played as 1 s long" in filled
    assert not [line for line in filled if "user" in line]


def test_recorded_times_count_on_the_gpu_where_the_job_ran(tmp_path):
    rule = 'rules = [{ field = "name", like = "bert*", type = "ml" }]'
    setting = recorded(scenario(tmp_path, rule, types=TYPES))
    workload = generate(setting, 0)
    assert workload.jobs["type"][[0, 2]].tolist() == [0, 0]  # whatever the case of the letters
    # c ran 240 s on a T4, half as fast: 120 s on a V100.
    np.testing.assert_allclose(workload.seconds[[0, 2]], [[60, 120], [120, 240]])
    assert "3 of 6 jobs: run time taken as that on a V100 32GB" in setting.filled


def test_a_type_depends_on_nothing_but_the_job_itself(tmp_path):
    first = generate(recorded(scenario(tmp_path, types=TYPES)), 0).jobs["type"]
    slower = JOBS.replace(",60,1,ann", ",6000,1,ann").replace(",300,1,cat", ",3,1,cat")
    again = generate(recorded(scenario(tmp_path, rows=slower, types=TYPES)), 0)
    np.testing.assert_array_equal(again.jobs["type"], first)
    alone = "\n".join(JOBS.splitlines()[:4]) + "\n"  # a, b, c without those that follow
    short = generate(recorded(scenario(tmp_path, rows=alone, types=TYPES, jobs=3)), 0)
    np.testing.assert_array_equal(short.jobs["type"], first[:3])


def test_a_type_stays_with_the_job_when_earlier_ones_are_gone_from_the_file(tmp_path):
    head, rows = "id,submit_time,run_s,gpus\n", [f"j{i},{i},60,1\n" for i in range(40)]
    whole, later = (
        prepare(scenario(tmp_path, rows=head + "".join(some), types=TYPES)).played.jobs["type"]
        for some in (rows, rows[7:])
    )
    assert later.tolist() == whole.tolist()[7:]


@pytest.mark.parametrize(("speeds", "count"), [("measured-mix", 3), ("gavel-types", 26)])
def test_assumed_types_are_drawn_from_those_of_a_shipped_scenario(tmp_path, speeds, count):
    rows = "\n".join(f"j{i},{i},60,1" for i in range(2000))
    found = scenario(
        tmp_path, f'speeds = "{speeds}"', jobs=2000, rows=f"id,submit,run_s,gpus\n{rows}\n"
    )
    assert len(found.types) == count
    workload = generate(recorded(found), 0)
    drawn = np.bincount(workload.jobs["type"], minlength=count) / 2000
    share = np.array([t.share for t in found.types])
    np.testing.assert_allclose(drawn, share / share.sum(), atol=0.04)
    assert workload.seconds[0, 0] != workload.seconds[0, 1]


def test_a_window_of_time_is_from_the_first_to_before_the_last(tmp_path):
    # Seconds of the history: what is below 1e8 is as in the file.
    setting = recorded(scenario(tmp_path, "from_s = 1100\nto_s = 1400", jobs=3))
    assert setting.played.jobs["gpus"].tolist() == [2, 4, 1]
    assert setting.played.jobs["arrival"].tolist() == [0, 100, 200]


def test_seeds_follow_each_other_in_the_history(tmp_path):
    setting = recorded(scenario(tmp_path, jobs=2))
    # 6 jobs, 2 a seed: they begin at 0, 2, 4, then 6 mod 5 = 1, 8 mod 5 = 3, 10 mod 5 = 0.
    firsts = [float(generate(setting, seed).seconds[0, 0]) for seed in range(6)]
    assert firsts == [60, 240, 1, 120, 30, 60]
    arrivals = generate(setting, 1).jobs["arrival"]
    np.testing.assert_allclose(arrivals, [0, 100], rtol=1e-12)


def test_twice_the_load_halves_the_times_between_arrivals(tmp_path):
    setting = recorded(scenario(tmp_path))
    double = prepare(adjusted(setting.scenario, load=2 * setting.scenario.load))
    np.testing.assert_allclose(
        generate(double, 0).jobs["arrival"], [0, 50, 100, 150, 200, 250], rtol=1e-12
    )


def test_capacity_is_that_of_the_jobs_themselves(tmp_path):
    # 8 GPUs alike. GPU-seconds: 60 + 2 x 120 + 4 x 240 + 0.5 x 30 + 1 + 300 = 1576 for 6 jobs.
    setting = recorded(scenario(tmp_path))
    assert setting.capacity_per_s == pytest.approx(8 / (1576 / 6))


def test_a_job_may_only_use_the_models_that_it_names(tmp_path):
    rows = "id,submit,run_s,gpus,allowed\na,0,1,1,T4\nb,9,1,1,V100M16|T4\nc,10,1,1,\n"
    workload = generate(recorded(scenario(tmp_path, rows=rows, jobs=3)), 0)
    assert workload.allowed.tolist() == [[False, True], [False, True], [True, True]]


def test_jobs_that_cannot_be_played_are_left_out_and_counted(tmp_path):
    rows = "id,submit,run_s,gpus\na,0,1,1\nb,1,,1\nc,2,1,0\nd,3,1,\ne,4,1,99\n"
    with pytest.raises(ConfigError, match="1 of 2 jobs of the history fit no pool"):
        prepare(scenario(tmp_path, rows=rows, jobs=1))
    setting = prepare(scenario(tmp_path, 'unfit = "drop"', rows=rows, jobs=1))
    assert len(setting.played.jobs) == 1
    assert [line for line in setting.filled if line.startswith("left out")] == [
        "left out: 1 jobs do not say how many GPUs",
        "left out: 1 jobs have no run time",
        "left out: 1 jobs fit no pool that they may use, even empty",
        "left out: 1 jobs ask for no GPU, and hold nothing (no GPU node, cores or times of theirs "
        "are recorded)",
    ]


def test_processors_are_played_as_gpus_only_on_request(tmp_path):
    rows = "id,submit,run_s,cores\na,0,10,2\nb,5,10,4\n"
    with pytest.raises(ConfigError, match="play processors as GPUs with gpus_from = 'cores'"):
        prepare(scenario(tmp_path, rows=rows, jobs=2))
    setting = prepare(scenario(tmp_path, 'gpus_from = "cores"', rows=rows, jobs=2))
    assert setting.played.jobs["gpus"].tolist() == [2, 4]


def test_policies_are_told_nothing_of_the_jobs_to_come(tmp_path):
    setting = recorded(scenario(tmp_path))
    assert_hides_the_truth(setting)


def test_accounts_and_priorities_follow_the_scenario(tmp_path):
    rows = "id,submit,run_s,gpus,queue,qos\na,0,1,1,x,LS\nb,1,1,1,y,BE\nc,2,1,1,x,\n"
    keys = "priorities = { LS = 1.0 }"
    found = scenario(tmp_path, keys, 'accounts = ["y", "x"]', rows=rows, jobs=3)
    jobs = generate(recorded(found), 0).jobs
    assert jobs["account"].tolist() == [1, 0, 1]
    assert jobs["priority"].tolist() == [1.0, 0.5, 0.5]
    with pytest.raises(ConfigError, match="accounts: 'y' of the history is not there"):
        prepare(scenario(tmp_path, keys, 'accounts = ["x"]', rows=rows, jobs=3))


@pytest.mark.parametrize(
    ("history", "more", "said"),
    [
        ("from_s = 5\nto_s = 5", "", "to_s 5 is not after from_s 5"),
        ("from_s = 9999", "", "none was submitted in the time from from_s to to_s"),
        ('speeds = "guessed"', "", "history.speeds"),
        ('rules = [{ field = "name", like = "*", type = "x" }]', "", "unknown job type 'x'"),
        ("", 'arrivals = { process = "bursty" }', "come when they came"),
        ("", "users = 2", "the history has 3"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(tmp_path, history, more, said):
    text = more or "users = 5"
    (tmp_path / "jobs.csv").write_text(JOBS)
    if "users" not in text:
        text += "\nusers = 5"
    path = tmp_path / "mine.toml"
    path.write_text(f'jobs = 6\n{text}\n[history]\nfile = "jobs.csv"\n{history}\n{CLUSTER}')
    with pytest.raises(ConfigError, match=said):
        prepare(load_scenario(path))


def test_more_jobs_than_there_are_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="jobs = 7, but the history has 6 that can be played"):
        prepare(scenario(tmp_path, jobs=7))


def test_a_history_is_made_ready_once_for_all_loads(tmp_path):
    wanted = scenario(tmp_path, types=TYPES)
    half, full = (prepare(adjusted(wanted, load=load)) for load in (0.5, 1.0))
    assert half.played is full.played
    assert (half.scenario.load, full.scenario.load) == (0.5, 1.0)
    assert half.rate == full.rate / 2


def test_failures_are_counted_at_the_load_that_is_played(tmp_path):
    # The less load, the longer a run: a node that fails each second does so too often at 1e-6.
    more = "[failures]\nmtbf_h = 0.001\nrepair_h = 0.001"
    wanted = scenario(tmp_path, more=f"load = 1.0\n{more}")
    prepare(wanted)
    with pytest.raises(ConfigError, match="makes about"):
        prepare(adjusted(wanted, load=1e-6))


def test_seven_jobs_have_three_windows_of_two(tmp_path):
    setting = prepare(scenario(tmp_path, rows=f"{JOBS}g,1600,9,1,ann,short,etl,,2,10,60\n", jobs=2))
    assert windows(setting.played, 2) == 3


# The first is a run that b lost.
LOST = JOBS.replace("\na,", "\nb,").replace("\n", ",\n").replace("requested_s,", "requested_s,lost")
LOST = LOST.replace("V100,4,2048,100,", "V100,4,2048,100,1")


def test_lost_runs_are_played_but_not_measured(tmp_path):
    setting = recorded(scenario(tmp_path, rows=LOST, more='measure = "after 50 %"'))
    workload = generate(setting, 0)
    assert workload.lost.tolist() == [True] + 5 * [False]
    assert workload.seconds[0, 0] == 60
    assert workload.measured(setting.scenario.measure).tolist() == [3, 4, 5]  # of five jobs
    assert any("1 of 6 jobs: run that a requeued job lost" in text for text in setting.filled)


def test_a_window_of_lost_runs_alone_is_refused(tmp_path):
    setting = recorded(scenario(tmp_path, rows=LOST, jobs=1))
    with pytest.raises(ConfigError, match="seed 0: plays only runs that requeued jobs lost"):
        generate(setting, 0)
    assert len(generate(setting, 1).jobs) == 1


def test_jobs_cancelled_before_they_started_are_left_out_and_named(tmp_path):
    rows = JOBS.replace("requested_s\n", "requested_s,status\n").replace("0\n", "0,completed\n")
    rows = rows.replace("900\n", "900,completed\n").replace(",,,\n", ",,,,\n")
    rows += "g,1600,,1,ann,short,etl,,2,10,60,cancelled\nh,1700,,1,ann,short,etl,,2,10,60,failed\n"
    filled = prepare(scenario(tmp_path, rows=rows)).filled
    assert "left out: 1 jobs were cancelled before they started" in filled
    assert "left out: 1 jobs have no run time" in filled
