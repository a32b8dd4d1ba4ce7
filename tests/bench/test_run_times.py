"""The benchmark of run-time estimates measures a full memory."""

from bench import measure, run_times
from tests.bench.test_bench import TINY


def test_the_measured_memory_is_full():
    found = run_times.trained((), run_times.jobs(run_times._LEARNED))
    assert found._estimator.state.memory.head[0]["size"] == 10_000


def test_both_predictions_are_measured_against_the_bar(monkeypatch):
    monkeypatch.setattr(run_times, "_LEARNED", 50)
    monkeypatch.setattr(run_times, "_QUERIES", 3)
    first, second = run_times.predicting(1)
    assert first.bar == second.bar == "< 200"
    assert first.value > 0
    assert second.name == "memory: a prediction, 3 GPU models"


def test_it_is_a_step_of_the_benchmark():
    assert "memory: a prediction" in [step.about for step in measure.in_process(TINY)]
