"""What `adlro train` advises in the end."""

from pathlib import Path

from adlro.cli.train_report import advice
from adlro.config.files import find_scenario, scenario_of


def test_a_policy_trained_on_a_history_shall_be_compared_on_a_later_part_of_it(tmp_path):
    (tmp_path / "jobs.csv").write_text("submit_time,run_s,gpus\n0,60,1\n")
    drawn = find_scenario("paper16")
    tables = {"history": "jobs.csv", "jobs": 1, "cluster": drawn.cluster.model_dump()}
    recorded = scenario_of(tables, tmp_path / "mine.toml")
    assert "compare with --from 50%" in advice(recorded, "mine.toml", Path("mine.npz"))
    assert advice(drawn, "paper16", Path("mine.npz")) == (
        "try: adlro compare paper16 --policies min-min,mine.npz"
    )
