"""What the commands say of a planted history, compared with what was planted.

An answer is the JSON of a command. `named` has what each command must find, `false_alarms` what it
names wrongly. A finding is no false alarm if it is another true name for what was planted:

- The partition that holds the idle model and no other GPUs is idle, too.
- The partition of low PriorityJobFactor has the very nodes of the overloaded one, so its jobs ask
  for what is not there; a command that adds up all demand on a partition's nodes must name both.

Everything else of these kinds is one: every other model, account and partition was drawn to be well
used, served in a fraction of the starved account's wait, and loaded by half to three quarters.
Findings of other kinds are not judged.
"""

import re

KINDS = ("idle-gpus", "starved-account", "overloaded-partition")


def accepted(true, kind):
    """Names that a finding of a kind may rightly have."""
    own = {true.site.idle} if true.site.idle != true.site.calm else set()
    return {
        "idle-gpus": {true.idle_model} | own,
        "starved-account": {true.starved_account},
        "overloaded-partition": {true.overloaded_partition} | true.sharing,
    }[kind]


def planted_name(true, kind):
    """The name that a finding of a kind must have."""
    names = true.idle_model, true.starved_account, true.overloaded_partition
    return dict(zip(KINDS, names, strict=True))[kind]


def named(true, answers):
    """Whether each thing was found; `answers` has the JSON of assess, plan and tune by name."""
    asked = [("assess", kind) for kind in KINDS]
    asked += [("plan", "idle-gpus"), ("tune", "starved-account")]
    found = {
        f"{command}: {kind}": _finds(answers[command], kind, planted_name(true, kind))
        for command, kind in asked
    }
    found["plan: cheapest removal"] = cheapest_removal(true, answers["plan"]) == true.idle_model
    found["tune: remedy"] = helps(true, answers["tune"])
    return found


def _finds(answer, kind, name):
    """Whether a finding has this kind, this name and a text."""
    return any(
        (each["kind"], each["name"]) == (kind, name) and each["text"].strip()
        for each in answer["findings"]
    )


def false_alarms(true, answers):
    """(command, kind, name) of every finding of the planted kinds that names something else."""
    return sorted(
        (command, each["kind"], each["name"])
        for command, answer in answers.items()
        for each in answer["findings"]
        if each["kind"] in KINDS and each["name"] not in accepted(true, each["kind"])
    )


def cheapest_removal(true, answer):
    """The model of the first option of the ranking that removes one, or None.

    Only removals were asked for: an option that has exactly one Gres type in its name removes it.
    """
    for option in answer["options"]:
        models = [model for model in true.models if _mentions(option["name"], model)]
        if len(models) == 1:
            return models[0]
    return None


def _mentions(text, word):
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", text) is not None


def helps(true, answer):
    """Whether the starved account is said to gain, or a setting that starves it is changed."""
    gains = any(
        (each["grouping"], each["name"]) == ("account", true.starved_account)
        for each in answer["gainers"]
    )
    return gains or any(_relieves(true, change) for change in answer["changes"])


def _relieves(true, change):
    """Whether a change lowers the guilty weight, or changes the setting that it multiplies."""
    weight, setting = true.cures
    if change["key"] == weight:
        return float(change["to"]) < float(change["from"])
    return setting in change["key"] and change["to"] != change["from"]
