"""The card of a learned policy: what it may say, and that nobody changed it."""

import json

import numpy as np
import pytest

from adlro.nets.q_network import MOST_MEMBERS, MOST_UNITS
from adlro.policies.loading import card as cards
from adlro.policies.loading import learned
from adlro.policies.loading.card import Figure, Seeds
from tests.commands import called
from tests.trained import arrays, forged, refused, saved, zipped


def test_a_card_may_be_laid_out_anew(tmp_path):
    path = saved(tmp_path)
    data = json.loads(path.with_suffix(".json").read_text())
    turned = dict(sorted(data.items(), reverse=True))
    path.with_suffix(".json").write_text(json.dumps(turned, indent="\t").replace("\n", "\r\n"))
    assert learned.load(path).card.name == "toy"


def test_a_key_that_a_later_version_adds_leaves_old_cards_valid(tmp_path, monkeypatch):
    path = saved(tmp_path)

    class Later(cards.Card):
        owner: str = "nobody"

    monkeypatch.setattr(cards, "Card", Later)
    assert learned.load(path).card.owner == "nobody"


def test_a_card_whose_figures_were_improved_is_refused(tmp_path):
    path = saved(tmp_path).with_suffix(".json")
    path.write_text(path.read_text().replace("-6.5", "-9.5"))
    assert refused(path).startswith(
        ".json: was changed after it was written (sha256_card differs); copy"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is not JSON"),
        (b"{'name': 'toy'}", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"format": ' + b"1" * 5000 + b"}", "is not JSON"),
        (b"[]", "is not the card of a learned policy"),
        (b"1", "is not the card of a learned policy"),
        (b"{}", "is not a card of format 1, the one that this adlro reads; update adlro if"),
        (b'{"format": 1}', "'name': field required; copy the file again"),
    ],
)
def test_what_is_no_card_is_refused(tmp_path, text, said):
    path = saved(tmp_path)
    path.with_suffix(".json").write_bytes(text)
    assert refused(path).startswith(f".json: {said}")


FIGURE = {"scenario": "paper16", "load": 0.8, "mean_jct_pct": -1.0, "ci95": [-2.0, 0.0]}
BUDGET = {"cpu_s": 1.0, "labelled_states": 1, "episodes": 1}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2, "colour": "red"}, "is not a card of format 1, the one that this adlro"),
        ({"obejctive": "mean JCT"}, "'obejctive': unknown key; was the card changed, or written"),
        ({"x\n\x1b[31m" + "y" * 5000: 1}, r"'x\n\x1b[31myyy"),
        ({"version": None}, "'version': input should be a valid string"),
        ({"about": "two\nlines"}, "'about': has characters that cannot be printed"),
        ({"name": "\x1b[31mred"}, "'name': has characters that cannot be printed"),
        ({"name": ""}, "'name': string should have at least 1 character"),
        ({"about": "x" * 2001}, "'about': string should have at most 2000 characters"),
        ({"hidden": [4]}, "'hidden.1': field required"),
        ({"hidden": [4, 3, 2]}, "'hidden': tuple should have at most 2 items"),
        ({"hidden": [0, 3]}, "'hidden.0': input should be greater than or equal to 1"),
        ({"hidden": [4, MOST_UNITS + 1]}, "'hidden.1': input should be less than or equal to "),
        ({"members": 0}, "'members': input should be greater than or equal to 1"),
        ({"members": MOST_MEMBERS + 1}, "'members': input should be less than or equal to 8"),
        ({"members": True}, "'members': input should be a valid integer"),
        ({"members": 1.5}, "'members': input should be a valid integer"),
        ({"caution": -0.1}, "'caution': input should be greater than or equal to 0"),
        ({"caution": 100.1}, "'caution': input should be less than or equal to 100"),
        ({"caution": np.nan}, "'caution': input should be a finite number"),
        ({"clamped": 1}, "'clamped': input should be a valid boolean"),
        ({"features": ["wait", "wait"]}, "'features': a name is there twice"),
        ({"seeds": {"first": 2, "last": 1}}, "'seeds': the last seed, 1, is before the first, 2"),
        ({"budget": BUDGET | {"cpu_s": np.inf}}, "'budget.cpu_s': input should be a finite number"),
        ({"budget": BUDGET | {"cpus": 1}}, "'budget.cpus': unknown key; "),
        ({"final": [FIGURE | {"load": 0}]}, "'final.0.load': input should be greater than 0"),
        ({"final": [FIGURE | {"ci95": [2, 1]}]}, "'final.0': the interval ends before it begins"),
        ({"sha256_weights": "abc"}, "'sha256_weights': string should match pattern"),
    ],
)
def test_a_card_that_says_what_none_may_is_refused_though_its_hash_is_right(
    tmp_path, changes, said
):
    assert refused(forged(tmp_path, zipped(arrays()), **changes)).startswith(f".json: {said}")


def test_final_figures_change_nothing_else_of_a_card_but_its_hash(tmp_path):
    file = saved(tmp_path).with_suffix(".json")
    before = json.loads(file.read_text())
    figures = [
        Figure(scenario="Philly", load=0.9, rival="drain-argmin", mean_jct_pct=-2, ci95=(-3, -1)),
        Figure(
            scenario="openb", load=0.9, mean_jct_pct=1, ci95=(-1, 2), seeds=Seeds(first=0, last=4)
        ),
    ]
    file.write_text(cards.with_figures(file.read_bytes(), file, figures))
    after = json.loads(file.read_text())
    assert {key for key in after if after[key] != before.get(key)} == {"final", "sha256_card"}
    assert learned.load(file).card.final == tuple(figures)


def test_a_figure_without_a_rival_is_against_min_min(tmp_path):
    figure = {"scenario": "paper16", "load": 0.8, "mean_jct_pct": -5.0, "ci95": [-6.0, -4.0]}
    path = forged(tmp_path, zipped(arrays()), final=[figure])
    assert learned.load(path).card.final[0].rival == "min-min"


def test_the_card_says_where_the_policy_wins_and_loses(tmp_path):
    def figure(name, low, high):
        mean = (low + high) / 2
        return {"scenario": name, "load": 0.8, "mean_jct_pct": mean, "ci95": [low, high]}

    final = [figure("good", -6.0, -4.0), figure("bad", 1.0, 3.0), figure("open", -1.0, 1.0)]
    path = forged(tmp_path, zipped(arrays()), final=final)
    lines = called("policy", "show", str(path)).stdout.splitlines()
    verdicts = {line.split()[0]: line for line in lines if "min-min" in line and "%" in line}
    assert "wins" in verdicts["good"]
    assert "loses" in verdicts["bad"]
    assert "not settled" in verdicts["open"]
