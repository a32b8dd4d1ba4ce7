"""Learned policies on disk: what is written is what is read, and anything else is refused."""

import errno
import io
import os
import re
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adlro import __version__
from adlro.errors import OutputError, PolicyError
from adlro.features.start_kernel import DRAIN, DRAIN_LOG, FEATURES
from adlro.nets import q_network as networks
from adlro.nets.q_network import MOST_UNITS, UNITS
from adlro.policies.loading import learned
from tests.trained import NAMES, ORIGIN, arrays, forged, network, refused, saved, zipped


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_what_was_saved_is_loaded_bit_for_bit_by_either_file(tmp_path, suffix):
    wanted = network()
    card = learned.save(tmp_path / f"toy{suffix}", wanted, ORIGIN)
    found = learned.load(tmp_path / f"toy{suffix}")
    assert found.card == card
    assert found.network.features == NAMES
    for a, b in zip(found.network[1:7], wanted[1:7], strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_the_card_tells_the_origin_and_what_follows_from_the_network(tmp_path):
    card = learned.load(saved(tmp_path)).card
    assert ORIGIN.model_dump().items() <= card.model_dump().items()
    assert (card.features, card.hidden) == (NAMES, (4, 3))
    assert (card.format, card.version) == (1, __version__)


def test_half_the_precision_takes_half_the_room_and_is_read_exactly(tmp_path):
    wide, narrow = saved(tmp_path, "a.npz"), saved(tmp_path, "b.npz", dtype=np.float32)
    # 2 + 5 * 4 + 4 + 4 * 3 + 3 + 3 = 44 weights
    assert wide.stat().st_size - narrow.stat().st_size == 4 * 44
    narrowed = network(dtype=np.float32)
    for a, b in zip(learned.load(narrow).network[1:7], narrowed[1:7], strict=True):
        assert a.dtype == np.float64
        assert a.tolist() == b.tolist()


def test_the_same_policy_is_the_same_bytes_at_any_time(tmp_path):
    first, again = saved(tmp_path, "a.npz"), saved(tmp_path, "b.npz")
    assert first.read_bytes() == again.read_bytes()
    assert first.with_suffix(".json").read_text() == again.with_suffix(".json").read_text()
    with zipfile.ZipFile(first) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.create_system for entry in archive.infolist()} == {3}


def test_weights_in_another_order_of_memory_are_the_same_bytes(tmp_path):
    turned = network()._replace(second=np.asfortranarray(network().second))
    learned.save(tmp_path / "turned.npz", turned, ORIGIN)
    assert (tmp_path / "turned.npz").read_bytes() == saved(tmp_path).read_bytes()


def test_a_policy_that_was_loaded_is_saved_as_the_same_bytes(tmp_path):
    path, copy = saved(tmp_path), tmp_path / "copy.npz"
    learned.save(copy, *learned.load(path))
    for suffix in learned.SUFFIXES:
        assert copy.with_suffix(suffix).read_bytes() == path.with_suffix(suffix).read_bytes()


def test_numpy_reads_the_weights_too(tmp_path):
    with np.load(saved(tmp_path), allow_pickle=False) as found:
        assert {name: found[name].tolist() for name in found} == {
            name: array.tolist() for name, array in arrays().items()
        }


def test_features_are_known_by_name_whatever_else_the_encoder_builds(tmp_path, monkeypatch):
    path = saved(tmp_path)
    now = dict(zip(FEATURES, np.random.default_rng(1).normal(size=len(FEATURES)), strict=True))
    fixed = {FEATURES[DRAIN], FEATURES[DRAIN_LOG]}  # where they are is known to compiled code
    moved = iter([name for name in reversed(FEATURES) if name not in fixed])
    later = (*(name if name in fixed else next(moved) for name in FEATURES), "new", "newer")
    then = now | {"new": 1e6, "newer": -1e6}

    def cost(values, order):
        params = learned.load(path).params
        x, scratch = np.array([values[name] for name in order]), np.zeros(UNITS)
        networks.predict(x, params, scratch)
        return scratch[0]

    before = cost(now, FEATURES)
    monkeypatch.setitem(learned.KNOWN, "adlro", later)
    assert later[: len(FEATURES)] != FEATURES
    assert cost(then, later) == before


def test_features_that_this_version_cannot_build_are_refused(tmp_path):
    path = forged(tmp_path, zipped(arrays()), features=[*NAMES[:4], "colour"], version="9.0")
    said = f".json: unknown feature 'colour'; adlro 9.0 wrote it: update yours ({__version__}), or"
    assert refused(path).startswith(said)


def test_neither_file_being_there_is_said_of_the_one_that_was_named(tmp_path):
    assert refused(tmp_path / "none.npz") == ".npz: there is no such file"
    assert refused(tmp_path / "none.json") == ".json: there is no such file"


@pytest.mark.parametrize(("named", "lost"), [(".npz", ".json"), (".json", ".npz")])
def test_one_file_without_the_other_is_refused(tmp_path, named, lost):
    path = saved(tmp_path).with_suffix(named)
    path.with_suffix(lost).unlink()
    said = f"{lost}: there is no such file; {path} is of no use without it"
    assert refused(path) == said


def test_a_folder_is_no_policy(tmp_path):
    (tmp_path / "toy.npz").mkdir()
    assert refused(tmp_path / "toy.npz") == ".npz: there is no such file"


def test_a_name_that_the_disk_cannot_have_is_refused_in_one_line(tmp_path):
    said = refused(tmp_path / ("x" * 300 + ".npz"))
    assert said == ".npz: cannot be read: File name too long"


@pytest.mark.parametrize("name", ["toy.zip", "toy", ".npz", ".json"])
def test_other_names_are_refused(name):
    with pytest.raises(PolicyError, match=r"it ends in \.npz or \.json"):
        learned.load(Path(name))


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    path = saved(tmp_path)
    path.write_bytes(content)
    assert refused(path) == ".npz: is not an .npz file, or is cut short; take it anew"


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert refused(path) == ".npz: is not an .npz file, or is cut short; take it anew"


def test_the_weights_of_another_policy_are_refused(tmp_path):
    path, other = saved(tmp_path), saved(tmp_path, "other.npz", seed=1)
    path.write_bytes(other.read_bytes())
    said = f".npz: is not what {path.with_suffix('.json')} describes (sha256 differs): "
    assert refused(path).startswith(said)


def test_a_forged_pair_is_loaded_if_nothing_is_wrong_with_it(tmp_path):
    found = learned.load(forged(tmp_path, zipped(arrays())))
    assert found.network.last.tolist() == network().last.tolist()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"last": None}, "'last.npy' is in it 0 times, not once"),
        ({"more": np.zeros(2)}, "'more.npy' is in it and no array of a policy"),
        ({"last": np.zeros(4)}, "'last' has shape (4,); by the card it is (3,)"),
        ({"last": np.zeros((3, 1))}, "'last' has shape (3, 1); by the card it is (3,)"),
        ({"first": np.zeros((4, 5))}, "'first' has shape (4, 5); by the card it is (5, 4)"),
        ({"first": np.asfortranarray(np.zeros((5, 4)))}, "'first' is not a plain array"),
        ({"last": np.zeros(3, np.int64)}, "'last' is of type <i8, not float32 or float64"),
        ({"last": np.zeros(3, ">f8")}, "'last' is of type >f8, not float32 or float64"),
        ({"last": np.zeros(3, np.float16)}, "'last' is of type <f2, not float32 or float64"),
        ({"last": np.array([1, None, 2], object)}, "'last' holds Python objects, which are"),
        ({"last": np.zeros(3, [("a", "f8")])}, "'last' is not a plain array"),
        ({"last": np.array([0, np.nan, 0])}, "'last' holds nan, inf or a number beyond ±1e+06"),
        ({"residual": np.array([np.inf, 0], np.float32)}, "'residual' holds nan, inf or a number"),
        ({"last": np.array([0, -1.1e6, 0])}, "'last' holds nan, inf or a number beyond ±1e+06"),
    ],
)  # fmt: skip
def test_arrays_that_no_policy_has_are_refused_though_the_hash_is_right(tmp_path, changes, said):
    assert refused(forged(tmp_path, zipped(arrays(**changes)))).startswith(f".npz: {said}")


def with_last(old, new):
    """An .npz file with other bytes in its last array, and a checksum that fits."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zipped(arrays()))) as source:
        content = {entry.filename: source.read(entry) for entry in source.infolist()}
    content["last.npy"] = content["last.npy"].replace(old, new)
    with zipfile.ZipFile(result, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return result.getvalue()


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (with_last(b"NUMPY\x01", b"NUMPY\x09"), "'last' is not a plain array"),
        (with_last(b"(3,)", b"(9**9**9,)"), "'last' has shape (9**9**9,); by the card it is (3,)"),
        (with_last(b"'<f8'", b"exit()"), "'last' is not a plain array"),
        (with_last(b"\n", b"\n1"), "'last' is longer or shorter than its shape"),
        (zipped(arrays(), compression=zipfile.ZIP_DEFLATED), "its arrays are compressed, which"),
        (zipped(arrays()).replace(b"last.npy", b"lost.npy"), "'last.npy' is in it 0 times"),
        (zipped(arrays()).replace(b"\x93NUMPY", b"\x93NUMPI"), "its arrays cannot be read"),
        (zipped(arrays())[:4] + zipped(arrays())[-22:], "its arrays cannot be read"),
    ],
)  # fmt: skip
def test_a_zip_file_made_to_do_harm_is_refused(tmp_path, weights, said):
    assert refused(forged(tmp_path, weights)).startswith(f".npz: {said}")


def test_an_array_that_is_there_twice_is_refused(tmp_path):
    weights = zipped(arrays())
    result = io.BytesIO(weights)
    with zipfile.ZipFile(result, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("last.npy", b"")
    said = ".npz: 'last.npy' is in it 2 times, not once"
    assert refused(forged(tmp_path, result.getvalue())).startswith(said)


def test_arrays_that_claim_more_than_the_file_holds_are_never_read(tmp_path):
    weights = bytearray(zipped(arrays()))
    listed = weights.rindex(b"last.npy") - 46  # its entry of the central directory
    weights[listed + 20 : listed + 28] = (3 * 2**30).to_bytes(4, "little") * 2  # both sizes
    said = ".npz: its arrays claim to be larger than the file"
    assert refused(forged(tmp_path, bytes(weights))).startswith(said)


@pytest.mark.parametrize(("suffix", "mib"), [(".npz", 64), (".json", 1)])
def test_an_absurdly_large_file_is_refused_without_being_read_in_whole(tmp_path, suffix, mib):
    path = saved(tmp_path)
    with path.with_suffix(suffix).open("ab") as file:
        file.truncate(2**40)  # takes no room on the disk
    assert refused(path).startswith(f"{suffix}: has more than {mib} MiB, the most that is read")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"second_bias": np.zeros(9)}, "'second_bias' has shape (9,); by the card it is (3,)"),
        ({"last": np.array([0, np.nan, 0])}, "'last' holds nan, inf or a number beyond"),
        ({"features": (*NAMES[:4], "colour")}, "unknown feature 'colour'"),
        ({"first_bias": np.zeros(MOST_UNITS + 1)}, "'hidden.0': input should be less than"),
    ],
)
def test_a_network_that_could_not_be_loaded_is_not_saved(tmp_path, wrong, said):
    with pytest.raises(PolicyError, match=re.escape(said)):
        learned.save(tmp_path / "toy.npz", network()._replace(**wrong), ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_objects_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="Object arrays"):
        learned.save(
            tmp_path / "toy.npz", network()._replace(last=np.array([1, 2, {}], object)), ORIGIN
        )


@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("was_there", [True, False])
def test_a_failure_to_put_a_file_in_place_changes_nothing(
    tmp_path, monkeypatch, fails_at, was_there
):
    if was_there:
        saved(tmp_path, seed=7)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls, replace = [], os.replace

    def failing(source, target):
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    file = tmp_path / ("toy.npz" if fails_at == 1 else "toy.json")
    said = f"{file}: cannot be written: No space left on device"
    with pytest.raises(OutputError, match=f"^{re.escape(said)}$"):
        saved(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(before) == 2 * was_there


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, fails_at):
    files, fsync = [], os.fsync

    def failing(handle):
        if stat.S_ISREG(os.fstat(handle).st_mode):
            files.append(handle)
            if len(files) == fails_at:
                raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="No space left on device"):
        saved(tmp_path)
    assert len(files) == fails_at
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_between_the_two_files_changes_nothing(tmp_path, monkeypatch):
    path = saved(tmp_path, seed=7)
    replace = os.replace

    def stopped(source, target):
        if str(target).endswith(".json"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path)
    assert learned.load(path).network.last.tolist() == network(seed=7).last.tolist()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"toy\.npz: there is no folder .*none'; make it first$"):
        saved(tmp_path / "none")


def test_a_newer_policy_takes_the_place_of_the_older(tmp_path):
    path = saved(tmp_path, seed=7)
    saved(tmp_path)
    assert learned.load(path).network.last.tolist() == network().last.tolist()
    assert sorted(found.name for found in tmp_path.iterdir()) == ["toy.json", "toy.npz"]


def damaged(data, rng):
    """One to three bytes changed, or the end cut off."""
    if rng.random() < 0.2:
        return data[: rng.integers(len(data))]
    result = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 4)):
        result[at] ^= rng.integers(1, 256)
    return bytes(result)


def test_no_damage_to_a_file_does_anything_but_refuse_it(tmp_path):
    """A changed blank of the card changes nothing that it says: then all is as it was."""
    path, rng = saved(tmp_path), np.random.default_rng(5)
    files = (path, path.with_suffix(".json"))
    whole, original = [file.read_bytes() for file in files], learned.load(path)
    survived = 0
    for _ in range(2000):
        hit = int(rng.integers(2))
        files[hit].write_bytes(damaged(whole[hit], rng))
        try:
            found = learned.load(path)
        except PolicyError:
            continue
        finally:
            files[hit].write_bytes(whole[hit])
        assert found.card == original.card
        assert hit == 1
        survived += 1
    assert survived < 40


def test_no_damage_to_the_weights_does_more_than_that_though_the_hash_is_right(tmp_path):
    weights, rng = zipped(arrays()), np.random.default_rng(6)
    outcomes = set()
    for _ in range(500):
        path = forged(tmp_path, damaged(weights, rng))
        try:
            outcomes.add(np.isfinite(learned.load(path).network.first).all())
        except PolicyError as exc:
            outcomes.add(str(exc).partition(": ")[2].split()[0])
    assert {"is", "its"} < outcomes
    assert False not in outcomes


def test_the_shipped_policy_is_whole_and_read_once():
    found = learned.shipped()
    assert set(found.network.features) <= set(FEATURES)
    assert learned.shipped() is found
    assert learned.shipped_file().is_relative_to(Path(learned.__file__).parents[1])
