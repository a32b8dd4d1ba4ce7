"""Plans on a history whose completion times can be computed by hand (tests/planning_toys.py)."""

import numpy as np
import pytest

from adlro.config.files import find_cluster
from adlro.errors import ConfigError, TraceError
from adlro.evaluate.batch import Batch
from adlro.evaluate.plan import evaluate
from adlro.evaluate.plan_study import make_study
from adlro.evaluate.purchase import Money, addition, removal
from adlro.evaluate.run_store import RunStore
from adlro.evaluate.significance import kendall_tau
from adlro.evaluate.variants import Variants
from adlro.workloads.history_scenario import Source
from tests import planning_toys as toys
from tests import truth
from tests.commands import called

FREE = Money({})


def planned(folder, add=(), remove=(), policies=("fcfs",), grow=1.0, **history):
    own = toys.variants(folder, **history)
    cluster = own.source.cluster
    options = [addition(text, cluster, FREE) for text in add]
    options += [removal(text, cluster, FREE) for text in remove]
    study = make_study(own, options, policies, grow)
    return study, evaluate(study, Batch(RunStore(own.file, folder / "runs"), 1))


def names(plan):
    return [one.name for one in plan.options]


def measured(study):
    scenario = study.cases(study.base, study.policies)[0].setting.scenario
    return scenario.jobs, scenario.measure.window(scenario.jobs)


def test_gpus_for_an_overloaded_cluster_end_all_waits(tmp_path):
    study, plan = planned(tmp_path, add=["1xV100", "4xV100"])
    jobs, counted = measured(study)
    found = {one.name: one.by_policy["fcfs"].by_speeds["none"] for one in plan.options}
    before = toys.mean_jct(jobs, counted)
    assert found["as it is"].mean_jct_s == pytest.approx(before, rel=1e-6)
    assert found["add 1xV100"].mean_jct_s == pytest.approx(toys.RUN, rel=1e-6)
    assert found["add 4xV100"].mean_jct_s == pytest.approx(toys.RUN, rel=1e-6)
    change = found["add 1xV100"].change_pct.mean
    assert change == pytest.approx(100 * (toys.RUN / before - 1), abs=1e-3)
    assert (plan.options[-1].name, plan.options[-1].gpus, found["as it is"].rank) == (
        "as it is",
        4,
        3,
    )
    assert plan.options[0].by_policy["fcfs"].mean_wait_s == pytest.approx(0, abs=1e-6)


def test_jobs_that_arrive_twice_as_fast_wait_as_computed_by_hand(tmp_path):
    few, _ = planned(tmp_path, remove=["2xV100"])
    _, plan = planned(tmp_path, remove=["2xV100"], grow=2.0)
    jobs, counted = measured(few)
    found = {one.name: one.by_policy["fcfs"].by_speeds["none"] for one in plan.options}
    rounds = [i // 4 for i in range(jobs)[counted]]  # one every 50 s: a round comes 200 s apart
    expected = toys.RUN + 300 * np.mean(rounds)
    assert found["as it is"].mean_jct_s == pytest.approx(expected, rel=1e-6)
    assert found["remove 2xV100"].change_pct.mean > 50


def test_removing_gpus_that_nobody_uses_changes_nothing(tmp_path):
    _, plan = planned(tmp_path, remove=["t4", "1xV100"], cluster=toys.VOLTA + toys.IDLE)
    assert set(names(plan)[:2]) == {"as it is", "remove t4"}
    gone = next(one for one in plan.options if one.name == "remove t4")
    assert (gone.stranded_jobs, gone.gpus) == (0, 4)
    for one in gone.by_policy["fcfs"].by_speeds.values():
        assert (one.change_pct.mean, one.rank) == (0, 1)
    kept = next(one for one in plan.options if one.name == "as it is").by_policy["fcfs"]
    assert gone.by_policy["fcfs"].energy_kwh_per_day < kept.energy_kwh_per_day


def test_an_option_that_strands_many_jobs_is_last_and_leaves_the_others_alone(tmp_path):
    text = toys.rows(queue=lambda i: "unused" if i % 2 else "main")
    study, plan = planned(
        tmp_path, add=["4xV100"], remove=["t4"], text=text, cluster=toys.VOLTA + toys.IDLE
    )
    last = plan.options[-1]
    assert (last.name, last.stranded_jobs, last.is_simulated) == ("remove t4", 240, False)
    assert last.by_policy == {}
    assert plan.jobs_compared == plan.jobs == 480
    assert len(study.contenders) == 2


def test_an_option_that_strands_a_few_jobs_is_ranked_below_those_that_strand_none(tmp_path):
    text = toys.rows(queue=lambda i: "unused" if i % 40 == 0 else "main")
    _, plan = planned(tmp_path, remove=["t4", "2xV100"], text=text, cluster=toys.VOLTA + toys.IDLE)
    assert names(plan) == ["as it is", "remove 2xV100", "remove t4"]
    assert [one.stranded_jobs for one in plan.options] == [0, 0, 12]
    assert plan.jobs_compared == 468


def test_jobs_that_ask_for_another_type_cannot_use_new_gpus_and_are_counted(tmp_path):
    text = toys.rows(asks=lambda i: "v100" if i % 3 == 0 else "")
    _, plan = planned(tmp_path, add=["4xT4"], text=text)
    expected = "add 4xT4: 320 of 480 jobs can use the new GPUs; 160 cannot, as they ask for another"
    assert any(line.startswith(expected) for line in plan.assumptions)


def test_run_times_do_not_depend_on_which_gpus_are_left(tmp_path):
    odd = toys.VOLTA.replace('"v100"', '"odd name"').replace('"V100"', '"A100"')
    odd += toys.IDLE.replace("unused", "main")
    head, *lines = toys.rows().splitlines()
    text = "\n".join([f"{head},gpu_model", *(f"{line},odd name" for line in lines)]) + "\n"
    study, _ = planned(tmp_path, remove=["odd name"], text=text, cluster=odd)
    sizes = [
        {speeds: one.played.sizes for speeds, one in contender.settings.items()}
        for contender in study.contenders
    ]
    assert (sizes[0]["measured-mix"] > toys.RUN).all()  # on a V100
    for speeds in study.base.settings:
        assert (sizes[0][speeds] == sizes[1][speeds]).all()


def test_a_policy_that_is_no_better_is_worth_nothing_and_stored_runs_are_not_repeated(tmp_path):
    study, plan = planned(tmp_path, add=["1xV100"], policies=("slurm", "fcfs"))
    assert [(one.policy, one.gpus) for one in plan.worth] == [("fcfs", 0)]
    assert plan.ranked_by == "slurm"
    again = Batch(RunStore(study.variants.file, tmp_path / "runs"), 1)
    assert evaluate(study, again) == plan
    assert again.played == 0


def test_agreement_is_that_of_even_and_odd_windows(tmp_path):
    _, plan = planned(tmp_path, add=["1xV100"], remove=["2xV100"])
    assert plan.agreement.kendall_tau == 1
    assert plan.agreement.even_windows == ["add 1xV100", "as it is", "remove 2xV100"]


@pytest.mark.parametrize(
    ("a", "b", "tau"),
    [
        ([1, 2, 3], [4, 5, 6], 1),
        ([1, 2, 3], [3, 2, 1], -1),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),
        ([1, 1, 2], [1, 2, 3], 2 / 6**0.5),
        ([1, 1], [1, 2], None),
    ],
)
def test_kendalls_tau(a, b, tau):
    found = kendall_tau(np.array(a, float), np.array(b, float))
    assert found == (None if tau is None else pytest.approx(tau))


def test_a_short_history_and_the_cluster_of_another_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r"100 GPU jobs in .* are too few"):
        planned(tmp_path, add=["1xV100"], text=toys.rows(jobs=100))
    text = toys.rows(queue=lambda i: "elsewhere" if i % 4 else "main")
    with pytest.raises(ConfigError, match="360 of 480 GPU jobs fit no pool"):
        planned(tmp_path, add=["1xV100"], text=text)


def test_a_model_without_known_speeds_is_simulated_where_they_are_not_needed(tmp_path):
    own = '[[gpu]]\nname = "Mystery"\nmemory_gb = 16\n'
    _, plan = planned(tmp_path, add=["4xMystery"], cluster=own + toys.VOLTA)
    option = next(one for one in plan.options if one.name == "add 4xMystery")
    assert list(option.by_policy["fcfs"].by_speeds) == ["none"]
    assert any("not simulated with measured mix" in line for line in plan.assumptions)


def test_runs_that_requeued_jobs_lost_are_played_but_not_measured(tmp_path):
    true = truth.write(tmp_path, 3, count=420)
    cluster = tmp_path / "cluster.toml"
    called("cluster", "import", str(true.nodes), "--out", str(cluster))
    own = Variants(Source(true.sacct, find_cluster(str(cluster)), {"unfit": "drop"}, None))
    study = make_study(own, [addition("4xV100", own.source.cluster, FREE)], ("fcfs",))
    assert study.rows.max() >= own.history.jobs  # there are such runs
    plan = evaluate(study, Batch(RunStore(own.file, tmp_path / "runs"), 1))
    found = plan.options[0].by_policy["fcfs"]
    assert plan.jobs == plan.jobs_compared == len(true.jobs)
    assert plan.options[0].name == "add 4xV100"
    assert np.isfinite([found.mean_jct_s, found.p99_jct_s, found.mean_wait_s]).all()
