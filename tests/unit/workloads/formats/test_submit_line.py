"""Options of sbatch, salloc and srun as real Slurm records them: without quotes."""

import pytest

from adlro.workloads.formats.submit_line import Asked, asked, gpu_types, partitions_of


@pytest.mark.parametrize(
    "line",
    [
        "sbatch --partition=gpu,lab --gres=gpu:a100:4 --constraint=ib&hdr run.sh",
        "sbatch -p gpu,lab --gres gpu:a100:4 -C ib&hdr run.sh",
        "/usr/bin/sbatch -pgpu,lab --gres='gpu:a100:4' -C=ib&hdr run.sh -p no --constraint=no",
        "sbatch --parsable -H -W --nice -p gpu,lab --gres=gpu:a100:4 -Cib&hdr run.sh --gpus 8",
        "srun --pty --x11 -p gpu,lab --gpus-per-node=a100:4 -C ib&hdr bash -G 2",
        "salloc --no-shell --exclusive -t 1:00 -p gpu,lab --gpus-per-node a100:4 -C ib&hdr",
        "sbatch -p gpu,lab --tres-per-node=gres/gpu:a100:4 -C ib&hdr --wrap python -G 8 -p no x.py",
        "sbatch -Hp gpu,lab --gres=gpu:a100:4 -WC ib&hdr run.sh",
        "srun -HIpno -lpgpu,lab --gres=gpu:a100:4 -K0 -C=ib&hdr bash -p no",
        "sbatch --new-flag -p gpu,lab --gres=gpu:a100:4(S:0),mps:100 -C ib&hdr run.sh",
    ],
)
def test_options_before_the_script_are_read_however_they_are_written(line):
    assert asked(line) == Asked(("gpu", "lab"), ("a100",), "ib&hdr", may_span=False)


@pytest.mark.parametrize(
    "line", ["", "sbatch", "sbatch run.sh -p gpu --gpus=4", "-", "sbatch - -G"]
)
def test_a_line_without_options_asks_for_nothing(line):
    assert asked(line) == Asked()


@pytest.mark.parametrize(
    ("options", "may_span"),
    [
        ("--gres=gpu:4", False),
        ("--gpus=4", True),
        ("-G4", True),
        ("-G volta:4", True),
        ("--gpus-per-task=1 --ntasks=4", True),
        ("--gpus=4 --nodes=1", False),
        ("--gpus=4 -N 1-1", False),
        ("--gpus=4 --nodes=1-2", True),
        ("--gpus=4 --gpus-per-node=4", False),
        ("--gpus-per-node=4", False),
    ],
)
def test_only_gpus_counted_over_all_nodes_may_span_nodes(options, may_span):
    assert asked(f"sbatch {options} run.sh").may_span is may_span


def test_a_name_with_blanks_hides_no_option():
    # as recorded by Slurm 22.05.8, whatever quotes the user typed
    line = "sbatch --job-name=cpu only, x=1 --partition=gpu,lab --gpus=2 --wrap sleep 3.5; exit 3"
    assert asked(line, "cpu only, x=1") == Asked(("gpu", "lab"), may_span=True)
    assert asked(line, "").partitions == ()  # taken for the script


def test_types_of_several_options_are_put_together_once():
    line = "sbatch --gres=gpu:a100:1,gpu:v100:1 --gpus=a100:2 run.sh"
    assert asked(line).gpu_types == ("a100", "v100")


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("gpu:a100:2,mps:100", ("a100",)),
        ("gpu:2", ()),
        ("gpu", ()),
        ("gres:gpu:1g.10gb:3", ("1g.10gb",)),
        ("gres/gpu:mi250=8,gres/gpu=8", ("mi250",)),
        ("gpu:a100", ("a100",)),
        ("none", ()),
        ("", ()),
    ],
)
def test_types_stand_between_the_resource_and_its_count(text, types):
    assert gpu_types(text) == types


@pytest.mark.parametrize(
    ("submitted", "recorded", "found"),
    [
        (("gpu", "lab"), "gpu", "gpu|lab"),  # started: only where it ran
        ((), "gpu,lab", "gpu|lab"),  # not started: all
        (("gpu",), "gpu", ""),
        ((), "gpu", ""),
        (("gpu",), "gpu_a100", ""),  # moved, by an operator or a plugin
        (("gpu", "lab"), "long,debug", "long|debug"),
        (("gpu", "lab"), "", "gpu|lab"),
        (("gpu",), "", "gpu"),
        ((), "", ""),
    ],
)
def test_all_partitions_count_unless_the_job_was_moved(submitted, recorded, found):
    assert partitions_of(Asked(partitions=submitted), recorded) == found
