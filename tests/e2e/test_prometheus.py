"""A real Prometheus that scrapes exporters, and what `adlro telemetry check` makes of it."""

import contextlib
import json
import time

import numpy as np
import pytest

from adlro.errors import TelemetryError
from adlro.telemetry import exposition
from adlro.telemetry.check import NEEDED
from adlro.telemetry.prometheus import Endpoint, query, read
from tests.commands import called
from tests.gpu_exporter import amd_smi, dcgm, rocm, serving
from tests.real_prometheus import MISSING, free_port, program, prometheus, until

pytestmark = pytest.mark.skipif(program() is None, reason=MISSING)


class World:
    """Three exporters and the Prometheus that scrapes them."""

    def __init__(self, url, nvidia, rocm, smi):
        self.source, self.nvidia, self.rocm, self.smi = Endpoint(url), nvidia, rocm, smi

    def hosts(self):
        return set(read(self.source).host)


@contextlib.contextmanager
def scraped(folder):
    pages = dcgm("v1") + dcgm("t1", spelling="hostname", model="Tesla T4")
    with serving(pages) as nvidia, serving(rocm(prefix="amd_")) as amd, serving(amd_smi()) as smi:
        ports = [server.port for server in (nvidia, amd, smi)]
        with prometheus(folder, ports) as url:
            there = World(url, nvidia, amd, smi)
            assert until(lambda: there.hosts() == {"v1", "t1", "r1", "127.0.0.1"})
            yield there


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Everything as it should be."""
    with scraped(tmp_path_factory.mktemp("calm")) as there:
        yield there


@pytest.fixture(scope="module")
def rough(tmp_path_factory):
    """For things that go wrong: Prometheus remembers GPUs that were there for an hour."""
    with scraped(tmp_path_factory.mktemp("rough")) as there:
        yield there


def check(source, *options):
    return called("telemetry", "check", "--prometheus", source.url, *options)


def test_every_gpu_of_three_exporters_is_seen_in_the_same_units(world):
    sample = read(world.source)
    assert sample.host == ("127.0.0.1",) * 2 + ("r1",) * 2 + ("t1",) * 2 + ("v1",) * 2
    assert sample.gpu.tolist() == [0, 1] * 4
    assert set(sample.part.tolist()) == {-1}
    assert sample.notes == ()
    nan = np.nan
    smi = [0.40, nan, nan, 0.10, 54.0, 150.5, nan]
    of_rocm = [0.61, 1793.0, 32752.0, 0.20, 37.0, 51.0, 3.0]
    of_dcgm = [0.84, 10908.0, 16160.0, 0.50, 68.0, 218.75, 0.0]
    expected = [smi, smi, of_rocm, of_rocm, of_dcgm, of_dcgm, of_dcgm, of_dcgm]
    np.testing.assert_allclose(sample.values, expected, rtol=1e-12)


def test_the_age_is_that_of_the_scrape_and_not_of_the_question(world):
    sample = read(world.source)
    assert sample.is_fresh(30.0).all()
    assert np.all(sample.age > 0)
    assert abs(sample.now - time.time()) < 30


def test_a_reading_that_says_itself_that_it_is_old_is_marked_and_not_taken_for_fresh(rough):
    page = rough.nvidia.page
    try:
        rough.nvidia.page = dcgm("aged", at=time.time() - 100).encode()
        assert until(lambda: "aged" in rough.hosts())
        sample = read(rough.source)
        own = np.array(sample.host) == "aged"
        assert sample.age[own] == pytest.approx(100, abs=40)
        assert sample.is_fresh(50.0)[~own].all()
        assert not sample.is_fresh(50.0)[own].any()
        result = check(rough.source, "--max-age", "50", "--need", "utilisation")
        assert result.returncode == 1
        assert "older than 50 s: aged/0 (1" in result.stdout
    finally:
        rough.nvidia.page = page
    assert until(lambda: rough.hosts() >= {"v1", "t1"})


def test_the_gpus_of_an_exporter_that_died_are_missing_and_come_back_with_it(rough):
    rough.rocm.stop()
    try:
        assert until(lambda: "r1" not in rough.hosts())
        sample = read(rough.source, lost=True)
        own = np.array(sample.host) == "r1"
        assert own.sum() == 2
        assert np.isnan(sample.values[own]).all()
        assert np.isnan(sample.age[own]).all()
        assert not sample.is_fresh(1e9)[own].any()
        result = check(rough.source, "--need", "utilisation")
        assert result.returncode == 1
        assert "\ngone, though seen within the last hour: " in result.stdout
        assert "r1/0, r1/1" in result.stdout
    finally:
        rough.rocm.start()
    assert until(lambda: "r1" in rough.hosts())


def test_an_exporter_too_slow_for_prometheus_is_as_good_as_dead(rough):
    rough.rocm.wait_s = 2.0
    try:
        assert until(lambda: "r1" not in rough.hosts())
    finally:
        rough.rocm.wait_s = 0.0
    assert until(lambda: "r1" in rough.hosts())


def test_one_malformed_line_spoils_a_page_for_prometheus_and_not_for_us(rough):
    def is_fresh():
        sample = read(rough.source)
        return sample.is_fresh(2.0)[np.array(sample.host) == "r1"].any()

    page = rough.rocm.page
    try:
        rough.rocm.page = page + b"oops oops\n"
        assert until(lambda: not is_fresh())  # Prometheus 2.42 keeps what it had, and that ages
        direct = exposition.read(Endpoint(rough.rocm.url + "/metrics"))
        assert direct.host == ("r1", "r1")
        assert np.isfinite(direct.values).all()
        assert len(direct.notes) == 1
        assert "'oops oops'" in direct.notes[0]
    finally:
        rough.rocm.page = page
    assert until(is_fresh)


def test_check_says_what_is_seen_and_what_is_missing(world, tmp_path):
    file = tmp_path / "check.json"
    result = check(world.source, "--json", str(file))
    assert (result.returncode, result.stderr) == (1, "")
    assert f"{world.source.url}: 8 GPUs on 4 hosts" in result.stdout
    assert "missing: memory_used of 127.0.0.1/0, 127.0.0.1/1" in result.stdout
    assert "something is missing or old" in result.stdout
    data = json.loads(file.read_text())
    assert data["needed"] == list(NEEDED)
    assert data["fresh"]["utilisation"] == 8
    assert data["fresh"]["memory_used"] == 6
    assert data["models"]["Tesla T4"] == 2
    assert data["unknown_models"] == []
    assert data["gpus"][0]["values"]["memory_used"] is None


def test_check_ends_with_0_if_all_that_is_needed_is_fresh(world):
    result = check(world.source, "--need", "utilisation,temperature,power,bandwidth")
    assert (result.returncode, result.stderr) == (0, "")
    assert "all fresh" in result.stdout


def test_a_question_that_prometheus_refuses_is_an_error_in_its_words(world):
    with pytest.raises(TelemetryError, match=r"HTTP 400: invalid parameter"):
        query(world.source, "sum(", lambda *_: None)


def test_another_prefix_is_understood_when_it_is_named(rough):
    page = rough.rocm.page
    try:
        rough.rocm.page = rocm("mine", prefix="site_").encode()
        named = rough.source._replace(prefix="site_")
        assert until(lambda: "mine" in set(read(named).host))
        assert "mine" not in rough.hosts()
    finally:
        rough.rocm.page = page
    assert until(lambda: "r1" in rough.hosts())


def test_a_prometheus_without_gpus_has_none(tmp_path):
    with serving("up_to_you 1\n") as other, prometheus(tmp_path, [other.port]) as url:
        result = check(Endpoint(url))
    assert (result.returncode, result.stderr) == (1, "")
    assert "no GPU seen" in result.stdout


def test_a_prometheus_that_is_down_is_said_in_one_line():
    result = check(Endpoint(f"http://127.0.0.1:{free_port()}"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("adlro: http://127.0.0.1:")
    assert "no answer: Connection refused; is it running there?" in result.stderr
