"""Quotas, prices and ageing as a scenario file says them, and what is said of mistakes."""

import pytest

from adlro.config.files import adjusted, load_scenario
from adlro.errors import ConfigError
from tests.scenario_files import GOOD, parsed, refusal, top, with_table, write


def quotas(*entries, head='accounts = ["a", "b"]'):
    """The good scenario with quotas."""
    return top(head) + "".join(f"\n[[quotas]]\n{entry}\n" for entry in entries)


SHARE = "share = 0.5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (quotas('account = "c"\n' + SHARE), "quotas.0.account: unknown account 'c'; known: a, b"),
        (quotas(f"user = 10\n{SHARE}"), "quotas.0.user: no user 10; they count from 0 to 9"),
        (quotas(f"user = -1\n{SHARE}"), "quotas.0.user: .* greater than or equal to 0, not -1"),
        (quotas(f'users = "all"\n{SHARE}'), "quotas.0.users: input should be 'each', not 'all'"),
        (
            quotas(f'account = "a"\nuser = 1\n{SHARE}'),
            "quotas.0: whose quota is it. give one of account, user, users; not account and user",
        ),
        (quotas(SHARE), "quotas.0: whose quota is it. .*; not nobody"),
        (quotas('account = "a"'), "quotas.0: nothing is limited for account 'a'; give a share or"),
        (quotas('account = "a"\nshare = 0'), "quotas.0.share: .* greater than 0, not 0"),
        (quotas('account = "a"\nshare = 1.1'), "quotas.0.share: .* or equal to 1, not 1.1"),
        (
            quotas('account = "a"\ncaps = { V100 = 1 }\nborrow = false'),
            "quotas.0: borrow = false of account 'a' needs a share",
        ),
        (quotas('account = "a"\ncaps = { V101 = 1 }'), "quotas.0.caps.V101.*: .*V101"),
        (quotas('account = "a"\ncaps = { V100 = -1 }'), "quotas.0.caps.V100: .* to 0, not -1"),
        (
            quotas('account = "a"\ncaps = { T4 = 1 }'),
            "quotas.0.caps: unknown model here 'T4'; known: V100 32GB",
        ),
        (
            quotas('account = "a"\ncaps = { V100 = 1, "V100 32GB" = 2 }'),
            "quotas.0: caps: 'V100 32GB' is there twice; remove one",
        ),
        (
            quotas('account = "a"\n' + SHARE, 'account = "a"\n' + SHARE),
            "quotas.1: account 'a' has a quota already; join them",
        ),
        (
            quotas('users = "each"\nshare = 0.1', "user = 2\nshare = 0.1"),
            "quotas: users = 'each' gives a user = N a second quota; keep one kind",
        ),
        (
            quotas('account = "a"\nshare = 0.8', 'account = "b"\nshare = 0.4'),
            "quotas: the accounts' shares add up to 1.2 of the cluster; lower them to 1 in all",
        ),
        (
            quotas("user = 0\nshare = 0.8", "user = 1\nshare = 0.4"),
            "quotas: the users' shares add up to 1.2 of the cluster; lower them to 1 in all",
        ),
        (
            quotas('users = "each"\nshare = 0.2'),
            "quotas: the users' shares add up to 2 of the cluster; lower them to 1 in all",
        ),
        (top('accounts = ["a", "a"]'), "accounts: 'a' is there twice; remove one"),
        (top("ageing_h = -1"), "ageing_h: .* greater than or equal to 0, not -1"),
        (top("ageing_h = nan"), "ageing_h: .* finite number, not nan"),
        (with_table("[prices]\nV100 = 0"), "prices.V100: .* greater than 0, not 0"),
        (with_table("[prices]\nV101 = 1"), "prices.V101: unknown GPU model 'V101'"),
        (top("prices = 3"), "prices: should be a table, not 3"),
        (with_table('[quotas]\naccount = "a"'), r"quotas: should be a list \(\[\[ \]\] makes one"),
        (
            with_table("[prices]\nT4 = 1"),
            "prices: nothing for 'V100 32GB'; list every model of the cluster",
        ),
        (
            with_table('[prices]\nV100 = 1\n"V100 32GB" = 2'),
            "prices: 'V100 32GB' is there twice; remove one",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=f"^{path}: {said}"):
        load_scenario(path)
    refusal(load_scenario, path)


def test_shares_that_add_up_to_all_of_the_cluster_are_accepted():
    # Ten times 0.1 is not quite 1 in floating point; accounts and users are counted apart.
    entries = ['account = "a"\nshare = 1', 'users = "each"\nshare = 0.1']
    assert len(parsed(quotas(*entries)).quotas) == 2


def test_the_holder_is_named_as_in_the_file():
    entries = ['account = "a"\n' + SHARE, "user = 3\nshare = 0.1"]
    assert [quota.holder for quota in parsed(quotas(*entries)).quotas] == ["account 'a'", "user 3"]


def test_ageing_is_off_unless_asked_for_and_0_switches_it_off():
    assert parsed(GOOD).ageing_h == parsed(top("ageing_h = 0")).ageing_h == 0


def test_a_wrong_ageing_option_is_named_as_it_is_written():
    said = refusal(lambda: adjusted(parsed(GOOD), ageing_h=-1.0))
    assert said.startswith("--ageing: ")
