"""What `adlro telemetry check` prints, and how it ends."""

import json
import time

import pytest
from click.testing import CliRunner
from rich.console import Console

from adlro.cli.telemetry import command
from adlro.errors import ConfigError, MissingExtraError, OutputError, TelemetryError
from adlro.telemetry.sample import NAMES
from tests.gpu_exporter import dcgm, line, rocm, serving


def run(*options):
    return CliRunner().invoke(command, ["check", *options])


def check(page, *options):
    with serving(page) as server:
        return run("--exporter", server.url, *options)


def test_all_fresh_ends_with_0():
    result = check(dcgm("v1") + rocm("r1", gpus=1))
    assert result.exit_code == 0, result.output
    assert ": 3 GPUs on 2 hosts" in result.output
    assert "Tesla V100-SXM2-16GB" in result.output
    assert result.output.endswith("\nall fresh\n")
    assert "missing" not in result.output
    assert "…" not in result.output


def test_a_channel_that_no_gpu_has_is_missing_and_ends_with_1():
    page = "".join(text + "\n" for text in dcgm().splitlines() if "GPU_TEMP" not in text)
    result = check(page)
    assert result.exit_code == 1
    assert "\nmissing: temperature of every GPU\n" in result.output
    assert result.output.endswith("\nsomething is missing or old\n")


def test_the_first_gpus_that_lack_a_channel_are_named():
    page = rocm("r1", gpus=1) + line("gpu_gfx_activity", 5, gpu_id=0, hostname="s")
    page += "".join(line("gpu_gfx_activity", 5, gpu_id=n, hostname="t") for n in range(5))
    result = check(page, "--need", "power")
    assert result.exit_code == 1
    assert "\nmissing: power of s/0, t/0, t/1, t/2 and 2 more\n" in result.output


def test_the_total_of_the_memory_need_not_be_there():
    page = "".join(text + "\n" for text in dcgm().splitlines() if "FB_FREE" not in text)
    assert check(page).exit_code == 0
    assert check(page, "--need", "memory_total").exit_code == 1


def test_old_readings_are_named_with_their_age():
    result = check(dcgm("v1", at=1.0), "--max-age", "60")
    assert result.exit_code == 1
    assert "\nolder than 60 s: v1/0 (" in result.output


def test_a_page_without_gpus_ends_with_1():
    result = check("up 1\n")
    assert result.exit_code == 1
    assert "0 GPUs on 0 hosts\nno GPU seen; understood are the metrics of " in result.output
    assert "--prefix" in result.output
    assert "missing" not in result.output


def test_a_model_that_the_catalogue_lacks_is_named_and_no_reason_to_fail():
    result = check(dcgm(model="Voodoo 2"))
    assert result.exit_code == 0
    assert "\nnot in the catalogue of GPUs: 'Voodoo 2'\n" in result.output


def test_what_was_left_out_is_noted():
    result = check(dcgm() + "oops\n")
    assert result.exit_code == 0
    assert "\nnote: malformed and left out: line " in result.output


def test_names_from_the_net_are_printed_as_they_are():
    result = check(dcgm("[red]x", model="[bold]m"), "--need", "memory_total,errors")
    assert "[bold]m" in result.output
    result = check(line("DCGM_FI_DEV_GPU_TEMP", 50, gpu=0, Hostname="[red]x"), "--need", "power")
    assert "\nwithout the name of the model: [red]x/0\n" in result.output


def test_what_a_terminal_would_act_on_is_no_name_of_a_host_or_a_model():
    result = check(dcgm("x\x1b[2J") + dcgm("y", model="m\x07") + "\x1b]0;oops\n")
    assert result.exit_code == 0
    assert ": 2 GPUs on 1 host\n" in result.output
    assert "\nwithout the name of the model: y/0, y/1\n" in result.output
    assert "\nnote: 16 readings left out that do not say of which GPU\n" in result.output
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def test_a_model_without_a_name_is_not_looked_for_in_the_catalogue():
    page = line("DCGM_FI_DEV_GPU_TEMP", 50, gpu=0, Hostname="h")
    data = json.loads(check(page, "--json", "-").output)
    assert data["unknown_models"] == []
    assert data["models"] == {"": 1}


def test_readings_from_the_future_are_not_called_old():
    result = check(dcgm("v1", at=time.time() + 5000, gpus=1), "--max-age", "60")
    assert result.exit_code == 1
    assert "\nfrom more than 60 s in the future: v1/0 (" in result.output
    assert " s); are the clocks right?\n" in result.output
    assert "older than" not in result.output


def answering(*bodies):
    """Check what answers like this about the values, the times and the GPUs of the last hour."""
    with serving("") as server:
        server.pages = [json.dumps(body).encode() for body in bodies]
        return run("--prometheus", server.url)


def vector(*series):
    return {"status": "success", "data": {"resultType": "vector", "result": list(series)}}


def reading(value, **labels):
    return {"metric": {"Hostname": "h", **labels}, "value": [100.0, str(value)]}


def test_gpus_that_are_gone_are_named_once_and_not_for_every_channel():
    values = vector(reading(50, __name__="DCGM_FI_DEV_GPU_TEMP", gpu="0", modelName="Tesla T4"))
    hour = vector(reading(1, gpu="0", modelName="A2"), reading(1, gpu="1", modelName="A2"))
    result = answering(values, vector(reading(90, gpu="0")), hour)
    assert result.exit_code == 1
    assert "\ngone, though seen within the last hour: h/1\n" in result.output
    assert "\nmissing: power of every GPU\n" in result.output
    assert "missing: temperature" not in result.output
    assert "older than" not in result.output


@pytest.mark.parametrize("time", ["NaN", "+Inf", "-Inf", "1e300"])
def test_readings_without_a_true_time_are_not_fresh_and_not_gone(time):
    values = vector(reading(50, __name__="DCGM_FI_DEV_GPU_TEMP", gpu="0", modelName="Tesla T4"))
    result = answering(values, vector(reading(time, gpu="0")), vector())
    assert result.exit_code == 1
    assert "\nof unknown age: h/0\n" in result.output
    assert "\nmissing: power of every GPU\n" in result.output
    assert "gone" not in result.output


def test_a_reading_that_is_neither_old_nor_lost_is_not_called_so():
    result = check(dcgm("v1", at=time.time() - 50), "--max-age", "60")
    assert result.exit_code == 0
    assert "gone" not in result.output
    assert "future" not in result.output


def test_a_wide_table_is_folded_and_not_cut(monkeypatch):
    monkeypatch.setattr("adlro.cli.options.stdout", lambda: Console(width=80))
    result = check(dcgm(model="NVIDIA A100-SXM4-40GB MIG 1g.5gb with a name without end"))
    rows = [" ".join(row.split()) for row in result.output.splitlines()]
    assert "GPUs with a reading of at most 120 s" in result.output
    assert "…" not in result.output
    assert "model GPUs sation used total width rature power errors" in rows
    assert "NVIDIA 2 2 2 2 2 2 2 2" in rows


def test_json_holds_every_gpu():
    result = check(dcgm("v1", gpus=1), "--json", "-")
    data = json.loads(result.output)
    (gpu,) = data["gpus"]
    assert (gpu["host"], gpu["gpu"], gpu["part"]) == ("v1", 0, None)
    assert gpu["is_fresh"]
    assert gpu["values"] == {
        "utilisation": 0.84, "memory_used": 10908.0, "memory_total": 16160.0, "bandwidth": 0.5,
        "temperature": 68.0, "power": 218.75, "errors": 0.0,
    }  # fmt: skip


CLUSTER = """
[[nodes]]
name = "v1"
gpu = "V100 16GB"
gpus = 2
cores = 8
memory_gb = 64
"""


def check_against(tmp_path, page, *options):
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    return check(page, "--cluster", str(path), *options)


def test_the_gpus_of_the_cluster_are_complete(tmp_path):
    result = check_against(tmp_path, dcgm("v1.example.org"))
    assert result.exit_code == 0, result.output
    assert result.output.endswith("\nall fresh\n")


def test_the_real_hosts_of_an_imported_cluster_are_found(tmp_path):
    path = tmp_path / "nodes.toml"
    path.write_text(CLUSTER.replace('"v1"', '"volta"') + 'hosts = ["gpu07", "gpu09.example.org"]\n')
    pages = dcgm("gpu07.example.org") + dcgm("gpu09")
    result = check(pages, "--cluster", str(path))
    assert result.exit_code == 0, result.output
    assert result.output.endswith("\nall fresh\n")


def test_where_the_gpus_are_not_those_of_the_cluster_it_says_so_and_ends_with_1(tmp_path):
    page = dcgm("v1", gpus=1, model="Tesla T4") + dcgm("login", gpus=1)
    result = check_against(tmp_path, page)
    assert result.exit_code == 1
    output = "".join(result.output.split())  # lines are folded, wherever the path makes them long
    assert "cluster.toml,withoutareading:v1/1" in output
    assert "cluster.toml:login/0" in output
    assert "cluster.tomlsays:v1/0is'TeslaT4',not'V10016GB'" in output
    assert result.output.endswith("\nsomething is missing or old\n")
    assert json.loads(check_against(tmp_path, page, "--json", "-").output)["cluster"][
        "missing"
    ] == ["v1/1"]


def test_without_any_gpu_the_whole_cluster_is_missing(tmp_path):
    result = check_against(tmp_path, "up 1\n")
    assert result.exit_code == 1
    assert "without a reading: v1/0, v1/1" in "".join(result.output.split("\n"))


def test_the_help_names_every_channel():
    said = " ".join(run("--help").output.split())
    assert ", ".join(NAMES[:-1]) + f" and {NAMES[-1]}" in said


@pytest.mark.parametrize("options", [(), ("--nvml", "--amd"), ("--prometheus", "x", "--amd")])
def test_not_one_source_is_refused(options):
    result = run(*options)
    assert result.exit_code == 2
    assert "say one of --prometheus URL, --exporter URL, --nvml, --amd" in result.output


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (("--prometheus", "nowhere"), TelemetryError, "write it like http://127.0.0.1:9090"),
        (("--exporter", "http://127.0.0.1:1"), TelemetryError, "is it running there?"),
        (("--amd", "--need", "heat"), ConfigError, "--need: no channel 'heat'"),
        (("--amd", "--cluster", "/nowhere.toml"), ConfigError, "cannot be read"),
        (("--amd", "--json", "/nowhere/x.json"), OutputError, "there is no folder"),
    ],
)
def test_bad_input_is_an_error_of_ours(options, error, words):
    result = run(*options)
    assert isinstance(result.exception, error)
    assert words in str(result.exception)


@pytest.mark.parametrize("option", ["--max-age", "--timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "soon", "nan", "inf"])
def test_times_must_be_more_than_nothing_and_less_than_ever(option, value):
    assert run("--amd", option, value).exit_code == 2


def test_without_nvidias_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert isinstance(run("--nvml").exception, MissingExtraError)
