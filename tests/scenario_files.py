"""Scenario files for tests: a valid one, variants of it, and their error messages."""

import re
import tomllib

import pytest

from adlro.config.scenario import Scenario
from adlro.errors import ConfigError

NODES = """
[[cluster.nodes]]
name = "n"
gpu = "V100"
gpus = 4
cores = 8
memory_gb = 64
"""
TYPE = """
[[types]]
name = "t"
share = 1.0
kind = "ml"
size = { median_s = 10 }
gpus = { values = [1, 2], p = [0.5, 0.5] }
"""
GOOD = f'[cluster]\nname = "c"\n{NODES}{TYPE}'
SIZE = "size = { median_s = 10 }"
PROBABILITIES = "p = [0.5, 0.5]"


def write(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def changed(old, new):
    """The valid scenario with one piece of text replaced."""
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def refusal(call, *arguments):
    """The message of a ConfigError, which must be one line."""
    with pytest.raises(ConfigError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert message.splitlines() == [message]
    return message


def top(line):
    """The valid scenario with another top-level key."""
    return f"{line}\n{GOOD}"


def of_type(line):
    """The valid scenario with another key of the job type."""
    return changed('kind = "ml"', f'kind = "ml"\n{line}')


def of_node(line):
    """The valid scenario with a key of the node group replaced."""
    key = line.split()[0]
    others = re.sub(rf"^{key} = .*\n", "", NODES, flags=re.MULTILINE)
    return changed(NODES, f"{others}{line}\n")


def with_table(text):
    """The valid scenario with another table at the end."""
    return f"{GOOD}\n{text}\n"


def parsed(text):
    """A scenario from the text of its file."""
    return Scenario.model_validate({"name": "mine", **tomllib.loads(text)})


def change(kind, keys):
    """The good scenario with one change."""
    return with_table(f'[[changes]]\nkind = "{kind}"\n{keys}')


def colocated(types, slowdown):
    """The good scenario with one figure of co-location."""
    return with_table(f"[[colocation]]\ntypes = {types}\nslowdown = {slowdown}")
