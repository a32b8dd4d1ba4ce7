"""Each format: what is recognised, and what its columns come to, worked by hand."""

import numpy as np
import pytest

from tests.histories import SAMPLES, history, words

NAN = np.nan
JOBS = {
    **dict.fromkeys(SAMPLES, 2),
    "helios": 3,
    "openb": 4,
    "swf": 3,
    "csv": 3,
}


def same(values, wanted):
    np.testing.assert_array_equal(values, np.array(wanted))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_is_recognised_by_its_content(tmp_path, name):
    found = history(tmp_path, SAMPLES[name], "no-hint-in-the-name")
    assert (found.header.format, found.jobs) == (name, JOBS[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_gzip_is_read_directly_whatever_the_file_is_called(tmp_path, name):
    plain = history(tmp_path, SAMPLES[name], "x.txt")
    packed = history(tmp_path, SAMPLES[name], "x.gz")
    (tmp_path / "x.gz").rename(tmp_path / "y.bin")
    assert packed.tables == plain.tables
    same(packed.submit_s, plain.submit_s)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "sacct-json"])
def test_windows_line_ends_and_no_last_line_end_change_nothing(tmp_path, name):
    plain = history(tmp_path, SAMPLES[name])
    other = history(tmp_path, SAMPLES[name].rstrip("\n").replace("\n", "\r\n"), "other.txt")
    assert (other.id, other.tables) == (plain.id, plain.tables)
    same(other.run_s, plain.run_s)


def test_helios_gives_arrival_run_time_and_gpus_and_nothing_else(tmp_path):
    found = history(tmp_path, SAMPLES["helios"])
    assert found.id == ("11#0", "12#1", "13#2")
    same(found.submit_s, [0.0, 30.5, 90.0])
    same(found.run_s, [120.0, 60.0, 7.25])
    same(found.gpus, [2000, 1000, 16000])  # thousandths
    silent = ("start_s", "requested_s", "cores", "user", "status", "gpu_model")
    assert [found.missing(field) for field in silent] == [3] * 6


def test_philly_counts_seconds_from_the_first_submission(tmp_path):
    found = history(tmp_path, SAMPLES["philly"])
    same(found.submit_s, [30.0, 0.0])
    assert found.header.origin_unix_s == 1507507230.0  # 2017-10-09 00:00:30 UTC
    assert found.header.defects == {"not in order of submission": 1}
    assert (found.id, words(found, "queue")) == ((), ["vc-a", "vc-b"])


def test_thetagpu_gives_user_project_and_requested_time_and_0_is_nobody(tmp_path):
    found = history(tmp_path, SAMPLES["thetagpu"])
    assert words(found, "user") == ["7001", ""]
    assert words(found, "account") == ["9001", ""]
    assert words(found, "status") == ["completed", "cancelled"]
    same(found.requested_s, [3600.0, 3600.0])
    same(found.start_s, [5.0, 120.0])  # 60 s after the first, and a wait of 60 s
    assert found.header.defects == {"ran longer than requested": 1}


def test_openb_gives_parts_of_a_gpu_allowed_models_and_pods_never_placed(tmp_path):
    found = history(tmp_path, SAMPLES["openb"])
    same(found.gpus, [1000, 460, 0, 8000])
    same(found.cores, [12, 6, 4, 64])
    same(found.run_s, [490.0, 60.0, NAN, 100.0])
    assert words(found, "allowed") == ["", "V100M16|V100M32", "", ""]
    assert words(found, "qos") == ["LS", "BE", "LS", "Burstable"]
    assert found.header.defects == {"asks for no GPU": 1}


def test_openb_without_times_is_read_too(tmp_path):
    found = history(tmp_path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,10,1,250\n")
    assert found.missing("submit_s") == 1
    same(found.gpus, [250])


def test_acme_multiplies_nodes_iterations_and_units(tmp_path):
    found = history(tmp_path, SAMPLES["acme"])
    same(found.gpus, [32000, 8000])
    same(found.run_s, [100.0, 10.0])  # 200 and 20 iterations of half a second
    same(found.cores, [480.0, 120.0])  # 15 for each GPU
    same(found.memory_mb, [4_096_000.0, 1_024_000.0])  # 10 x 100 GB for each of 4 and 1 nodes
    assert words(found, "name") == ["pretrain", ""]


def test_supercloud_reads_numbered_resources_and_takes_no_ids(tmp_path):
    found = history(tmp_path, SAMPLES["supercloud"])
    same(found.gpus, [2000, 0])
    same(found.cores, [20.0, 4.0])
    same(found.memory_mb, [8500.0, 100.0])
    same(found.requested_s, [3600.0, NAN])
    same(found.run_s, [300.0, 3600.0])
    assert words(found, "status") == ["completed", "timeout"]
    assert found.id == ()


def test_eagle_lets_tasks_of_an_array_share_an_id(tmp_path):
    found = history(tmp_path, SAMPLES["eagle"])
    assert (found.jobs, found.id) == (2, ())
    same(found.gpus, [2000, 0])
    same(found.run_s, [3600.0, 605.0])
    assert words(found, "status") == ["completed", "timeout"]


def test_gavel_names_job_types_as_gavel16_does_and_has_no_run_times(tmp_path):
    found = history(tmp_path, SAMPLES["gavel"])
    assert words(found, "name") == ["ResNet-18-32", "A3C"]
    same(found.submit_s, [0.0, 66.5])
    same(found.gpus, [1000, 4000])
    assert found.missing("run_s") == 2


def test_dlrm_leaves_empty_times_missing(tmp_path):
    found = history(tmp_path, SAMPLES["dlrm"])
    same(found.submit_s, [NAN, 100.0])
    same(found.run_s, [NAN, 60.0])
    same(found.memory_mb, [122_880.0, 61_440.0])


def test_hydra_takes_the_time_on_the_v100(tmp_path):
    found = history(tmp_path, SAMPLES["hydra"])
    same(found.run_s, [200.0, 70.0])
    assert words(found, "gpu_model") == ["V100", "V100"]


def test_cqsim_reads_times_and_processors(tmp_path):
    found = history(tmp_path, SAMPLES["cqsim"])
    assert found.id == ("9", "8")
    same(found.cores, [63.0, 11.0])
    same(found.run_s, [100.0, 50.0])
    same(found.requested_s, [43200.0, 600.0])


def test_swf_reads_minus_one_as_missing_and_the_comments(tmp_path):
    found = history(tmp_path, SAMPLES["swf"])
    same(found.submit_s, [0.0, 60.0, 90.0])
    same(found.start_s, [10.0, NAN, 90.0])
    same(found.run_s, [300.0, NAN, 45.0])
    same(found.cores, [16.0, 8.0, 4.0])  # requested, else used
    same(found.memory_mb, [32.0, NAN, 16.0])  # KB a processor: 2048 x 16 and 4096 x 4
    assert words(found, "user") == ["3", "", "3"]
    assert words(found, "status") == ["completed", "failed", "cancelled"]
    assert found.header.origin_unix_s == 1e9
    assert found.header.machine_cores == 128
    assert found.missing("gpus") == 3


def test_swf_may_have_a_nineteenth_number(tmp_path):
    line = "1 1535348017 -1 17348 -1 -1 -1 512 18000 -1 -1 -1 -1 -1 -1 -1 -1 -1 0\n"
    found = history(tmp_path, "; MaxNodes: 49152\n" + line)
    assert found.header.origin_unix_s == 1535348017.0
    same(found.submit_s, [0.0])
    assert found.header.machine_cores == 49152


def test_sacct_leaves_steps_out_and_prefers_what_a_job_had(tmp_path):
    found = history(tmp_path, SAMPLES["sacct"])
    assert found.id == ("1", "2")
    assert found.header.defects == {"steps left out": 1, "asks for no GPU": 1}
    same(found.gpus, [2000, 0])
    same(found.memory_mb, [8192.0, 500.0])
    same(found.requested_s, [1200.0, NAN])
    same(found.run_s, [600.0, NAN])  # the second never started
    assert words(found, "gpu_model") == ["volta", ""]
    assert words(found, "status") == ["completed", "cancelled"]
    assert words(found, "user") == ["ann", "bob"]


def test_sacct_reads_written_durations_where_there_are_no_raw_ones(tmp_path):
    text = "JobID|Submit|Start|End|Elapsed|Timelimit\n"
    text += "7|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-06T11:00:00|1-01:00:00|2-00:00:00\n"
    found = history(tmp_path, text)
    same(found.run_s, [90000.0])
    same(found.requested_s, [172800.0])


def test_sacct_json_reads_bare_and_wrapped_numbers(tmp_path):
    found = history(tmp_path, SAMPLES["sacct-json"])
    assert found.id == ("5", "6")
    same(found.gpus, [4000, 4000])
    same(found.requested_s, [300.0, 300.0])
    same(found.priority, [70.0, 70.0])
    same(found.nodes, [2, 2])  # only what was requested says it
    same(found.start_s, [60.0, 60.0])
    assert words(found, "gpu_model") == ["turing", "turing"]
    assert words(found, "user") == ["ann", "ann"]
    assert words(found, "status") == ["timeout", "timeout"]


def test_a_plain_csv_goes_by_well_known_names(tmp_path):
    found = history(tmp_path, SAMPLES["csv"])
    assert found.id == ("a", "b", "c")
    same(found.submit_s, [10.0, 20.0, 5.0])
    same(found.gpus, [500, 2000, -1])
    assert words(found, "queue") == ["gpu", "gpu", "long; name"]
    assert words(found, "status") == ["completed", "failed", "completed"]


def test_what_a_job_of_slurm_had_counts_before_what_it_asked_for(tmp_path):
    head = "JobIDRaw|Submit|ReqTRES|AllocTRES\n"
    had = "1|2026-01-05T10:00:00|cpu=2,gres/gpu=1,mem=8G|cpu=4,gres/gpu:volta=3,gres/gpu=3\n"
    asked = "2|2026-01-05T10:00:00|cpu=2,gres/gpu=1,mem=8G|\n"
    found = history(tmp_path, head + had + asked)
    assert found.gpus.tolist() == [3000, 1000]
    assert found.cores.tolist() == [4.0, 2.0]
    assert found.memory_mb.tolist() == [8192.0, 8192.0]
    assert words(found, "gpu_model") == ["volta", ""]


SACCT_HEAD = "JobID|State|Submit|ElapsedRaw|AllocTRES\n"


def test_elapsed_time_of_a_job_under_way_is_no_run_time_even_if_ends_are_not_printed(tmp_path):
    lines = "1|RUNNING|2026-01-01T00:00:00|50|cpu=1,gres/gpu=1\n"
    lines += "2|COMPLETED|2026-01-01T00:00:00|70|cpu=1,gres/gpu=1\n"
    found = history(tmp_path, SACCT_HEAD + lines)
    np.testing.assert_array_equal(found.run_s, [np.nan, 70])


def test_resources_that_nobody_asks_for_may_have_any_value(tmp_path):
    line = "1|COMPLETED|2026-01-01T00:00:00|50|cpu=2,energy=18446744073709551614,gres/gpu=1\n"
    found = history(tmp_path, SACCT_HEAD + line)
    assert (found.cores[0], found.gpus[0]) == (2, 1000)
    energy = '"allocated": [\n     {"type": "energy", "name": "", "count": 18446744073709551614},'
    text = SAMPLES["sacct-json"].replace('"allocated": [', energy)
    before, after = history(tmp_path, SAMPLES["sacct-json"]), history(tmp_path, text)
    assert text != SAMPLES["sacct-json"]
    np.testing.assert_array_equal(after.gpus, before.gpus)


def test_gpus_are_unknown_if_slurm_names_none_in_all_of_a_history(tmp_path):
    one = "1|COMPLETED|2026-01-01T00:00:00|50|cpu=2,mem=1G\n"
    found = history(tmp_path, SACCT_HEAD + one)
    assert (found.gpus[0], found.header.defects) == (-1, {})
    assert "AccountingStorageTRES" in found.header.notes[-1]
    both = history(tmp_path, SACCT_HEAD + one + "2|FAILED|2026-01-01T00:00:00|5|gres/gpu=1\n")
    assert (both.gpus.tolist(), both.header.defects) == ([0, 1000], {"asks for no GPU": 1})


def test_a_csv_file_with_more_columns_than_itp_has_keeps_them(tmp_path):
    text = "job_id,submission_time,duration,num_gpu,user\na,1,2,1,ann\n"
    found = history(tmp_path, text)
    assert (found.header.format, words(found, "user")) == ("csv", ["ann"])
    assert (found.run_s[0], found.gpus[0]) == (2, 1000)
