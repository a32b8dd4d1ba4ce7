"""Job types in a scenario file: notation of demands, and error messages."""

import pytest

from adlro.config.files import load_scenario
from adlro.model.job import Lognormal, LogUniform, Pareto
from tests.scenario_files import PROBABILITIES, SIZE, changed, of_type, refusal, write

GANG = f"gpus = {{ values = [1, 2], {PROBABILITIES} }}"


def test_a_bare_number_is_a_choice_of_one(tmp_path):
    scenario = load_scenario(write(tmp_path, of_type("cores = 6")))
    assert (scenario.types[0].cores.values, scenario.types[0].cores.p) == ((6,), (1,))


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("{ median_s = 7, sigma = 0, cap = 3 }", Lognormal(median_s=7, sigma=0, cap=3)),
        (
            '{ law = "pareto", minimum_s = 60, alpha = 1.3 }',
            Pareto(law="pareto", minimum_s=60, alpha=1.3, cap=1000),
        ),
        (
            '{ law = "log-uniform", borders_s = [60, 600] }',
            LogUniform(law="log-uniform", borders_s=(60, 600), p=(1,)),
        ),
    ],
)
def test_a_size_is_lognormal_unless_it_names_another_law(tmp_path, written, size):
    scenario = load_scenario(write(tmp_path, changed(SIZE, f"size = {written}")))
    assert scenario.types[0].size == size


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("borders_s = [60, 60]", "types.0.size: borders_s must rise, not (60.0, 60.0)"),
        ("borders_s = [1, 2, 3]", "types.0.size: 2 pieces need as many p that add up to 1"),
        ("borders_s = [1, 2], p = [0.5]", "types.0.size: 1 pieces need as many p"),
        ("borders_s = [1]", "types.0.size.borders_s: "),
    ],
)
def test_pieces_of_a_size_that_do_not_fit_together_are_refused(tmp_path, written, said):
    text = changed(SIZE, f'size = {{ law = "log-uniform", {written} }}')
    assert said in refusal(load_scenario, write(tmp_path, text))


@pytest.mark.parametrize("literal", ["nan", "inf", "-1"])
@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("communication = {}", "communication"),
        ("checkpoint_s = {}", "checkpoint_s"),
        ("checkpoint_every_s = {}", "checkpoint_every_s"),
        ("gpu_share = {}", "gpu_share.values.0"),
        ("priority = {{ low = {} }}", "priority.low"),
        ("priority = {{ high = {} }}", "priority.high"),
        ("cores = {}", "cores.values.0"),
        ("memory_gb = {}", "memory_gb.values.0"),
        ("gpu_memory_gb = {}", "gpu_memory_gb.values.0"),
        ("speed = {{ T4 = {} }}", "speed.T4"),
    ],
)
def test_a_number_of_a_job_type_out_of_range_is_named(tmp_path, line, key, literal):
    path = write(tmp_path, of_type(line.format(literal)))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: types.0.{key}: input should be ")
    assert message.endswith(f", not {literal}")


def test_a_checkpoint_that_never_ends_is_refused(tmp_path):
    path = write(tmp_path, of_type("checkpoint_s = 1e308"))
    said = "types.0.checkpoint_s: input should be less than or equal to 1000000000, not 1e+308"
    assert refusal(load_scenario, path) == f"{path}: {said}"


@pytest.mark.parametrize("literal", ["'many'", "true"])
def test_a_demand_that_is_no_number_is_answered_with_what_can_be_written(tmp_path, literal):
    message = refusal(load_scenario, write(tmp_path, of_type(f"cores = {literal}")))
    assert "types.0.cores: should be a number or { values = [...], p = [...] }, not " in message


@pytest.mark.parametrize(
    ("p", "said"),
    [
        ("[0.5, 0.4]", "the probabilities (0.5, 0.4) add up to 0.9, not 1"),
        ("[0.6, 0.6]", "the probabilities (0.6, 0.6) add up to 1.2, not 1"),
        ("[1.0]", "2 values need as many probabilities, not (1.0,)"),
    ],
)
def test_probabilities_must_sum_to_one(tmp_path, p, said):
    path = write(tmp_path, changed(PROBABILITIES, f"p = {p}"))
    assert refusal(load_scenario, path) == f"{path}: types.0.gpus: {said}"


def test_probabilities_may_miss_one_by_rounding(tmp_path):
    thirds = "cores = { values = [1, 2, 4], p = [0.3333333333, 0.3333333333, 0.3333333333] }"
    scenario = load_scenario(write(tmp_path, of_type(thirds)))
    assert scenario.types[0].cores.values == (1, 2, 4)


@pytest.mark.parametrize(
    ("key", "written", "said"),
    [
        ("gpus", "0", "a job needs at least 1 GPU, not 0"),
        ("gpus", "{ values = [0, 2], p = [0.5, 0.5] }", "a job needs at least 1 GPU, not 0"),
        ("gpus", "1.5", "whole numbers are needed, not (1.5,)"),
        ("cores", "2.5", "whole numbers are needed, not (2.5,)"),
    ],
)
def test_a_job_takes_whole_gpus_and_cores_and_at_least_one_gpu(tmp_path, key, written, said):
    gang = f"gpus = {{ values = [1, 2], {PROBABILITIES} }}"
    path = write(tmp_path, changed(gang, f"{key} = {written}"))
    message = refusal(load_scenario, path)
    assert message.startswith(f"{path}: types.0.{key}: ")
    assert message.endswith(said)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "checkpoint_s = 600\ncheckpoint_every_s = 300",
            "checkpoint_s = 600 is not shorter than checkpoint_every_s = 300: it would save more "
            "than it works",
        ),
        (
            "checkpoint_s = 30\ncheckpoint_every_s = 30",
            "checkpoint_s = 30 is not shorter than checkpoint_every_s = 30: it would save more "
            "than it works",
        ),
        (
            "checkpoint_every_s = 900",
            "checkpoint_every_s = 900 needs checkpoint_s, what a save costs",
        ),
    ],
)
def test_a_save_must_be_shorter_than_the_work_between_two(tmp_path, keys, said):
    path = write(tmp_path, of_type(keys))
    assert refusal(load_scenario, path) == f"{path}: types.0: {said}"


def test_saves_that_cost_nothing_may_come_at_any_interval(tmp_path):
    path = write(tmp_path, of_type("checkpoint_s = 0\ncheckpoint_every_s = 0.001"))
    assert load_scenario(path).types[0].checkpoint_every_s == 0.001


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("0", "0"),
        ("0.0004", "0.0004"),
        ("1.001", "1.001"),
        ("{ values = [0.5, 2], p = [0.5, 0.5] }", "2"),
    ],
)
def test_a_share_is_of_one_gpu_and_at_least_a_thousandth(tmp_path, written, share):
    path = write(tmp_path, changed(GANG, f"gpu_share = {written}"))
    said = f"types.0.gpu_share: a share of one GPU is between 0.001 and 1, not {share}"
    assert refusal(load_scenario, path) == f"{path}: {said}"


@pytest.mark.parametrize("gpus", ["2", "{ values = [1, 2], p = [0.9, 0.1] }"])
@pytest.mark.parametrize(
    ("share", "least"), [("0.5", "0.5"), ("{ values = [1, 0.25], p = [0.5, 0.5] }", "0.25")]
)
def test_a_gang_cannot_be_of_slices(tmp_path, gpus, share, least):
    path = write(tmp_path, changed(GANG, f"gpus = {gpus}\ngpu_share = {share}"))
    assert refusal(load_scenario, path) == (
        f"{path}: types.0: a gang of 2 GPUs cannot take gpu_share = {least} of each: only a job of "
        "one GPU may take a slice"
    )


@pytest.mark.parametrize(
    ("gpus", "share"),
    [
        ("1", "0.5"),
        ("2", "1"),
        ("2", "0.9999"),  # a thousandth is the least difference
        ("{ values = [1, 2], p = [1, 0] }", "0.5"),  # never drawn
        ("2", "{ values = [1, 0.5], p = [1, 0] }"),
    ],
)
def test_slices_and_gangs_that_never_meet_are_allowed(tmp_path, gpus, share):
    path = write(tmp_path, changed(GANG, f"gpus = {gpus}\ngpu_share = {share}"))
    assert load_scenario(path).types[0].gpu_share.drawn()[0] <= 1
