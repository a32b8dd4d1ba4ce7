"""Sentences that explain a decision; every number in them comes from the state or the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from adlro.model.state import WHOLE, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adlro.evaluate.explanation import Decision, Explanation, Option, Planned

_SOON = 1e-6  # seconds: less is now, or no difference
_NAMED = 3  # groups of features that are worth a word
_WORTH = 0.05  # share below which a group is not


class Names(NamedTuple):
    """Display names of pools [P] and job types [T]."""

    pools: Sequence[str]
    types: Sequence[str]


def seconds(value: float) -> str:
    """Format a time in seconds, with tenths of a second below 10 s."""
    return f"{value:,.1f} s" if abs(value) < 9.95 else f"{value:,.0f} s"


def named(option: Option, decision: Decision, names: Names) -> str:
    """Describe an option in a phrase: "wait", or which job it starts on which pool."""
    if option.job < 0:
        return "wait"
    return f"start {_job(option.job, decision, names)} on {names.pools[option.pool]}"


def _job(j: int, decision: Decision, names: Names) -> str:
    job = decision.view.jobs[j]
    plural = "s" if job["gpus"] > 1 else ""
    return f"job {j} ({names.types[job['type']]}, {gpus(job)} GPU{plural})"


def gpus(job: Row) -> str:
    """Format the number of GPUs of a job, or its share of one GPU."""
    return f"{job['gpus'] * job['share'] / WHOLE:g}"


def _when(planned: Planned) -> str:
    return "now" if planned.start <= _SOON else f"in {seconds(planned.start)}"


def _there(planned: Planned, names: Names) -> str:
    """Say when and where a job starts, and how long it runs there."""
    run = seconds(planned.end - planned.start)
    return f"{_when(planned)} on {names.pools[planned.pool]} ({run})"


def _times_faster(slow: float, fast: float) -> str:
    return f"{slow / fast:.1f}× faster" if fast > 0 else "faster"


class _Case(NamedTuple):
    """An explanation, with the chosen option (`ours`) and the alternative (`theirs`)."""

    said: Explanation
    names: Names
    ours: Option
    theirs: Option

    def gain(self, j: int) -> float:
        """Return how many seconds sooner the plan ends job j after `ours` than after `theirs`."""
        return self.said.rival_plan[j].end - self.said.plan[j].end

    def later(self) -> int:
        """Count the jobs that start later in the plan after `theirs` than after `ours`."""
        ours, theirs = self.said.plan, self.said.rival_plan
        return sum(theirs[j].start > ours[j].start + _SOON for j in ours)

    def job(self, j: int) -> str:
        """Describe a job by its number, type and GPUs."""
        return _job(j, self.said.decision, self.names)


def _waits_for_it(case: _Case) -> str:
    """Explain a choice to wait from which the job that could start now gains most."""
    j, here = case.theirs.job, case.theirs.seconds
    then, free = case.said.plan[j], case.names.pools[case.theirs.pool]
    run, place = then.end - then.start, case.names.pools[then.pool]
    if then.pool == case.theirs.pool:  # the plan counts GPUs, so it hopes for one node
        return (
            f"waits: started now, job {j} would span nodes of {place} and take {seconds(here)} "
            f"instead of {seconds(run)}; by the plan it starts in {seconds(then.start)}"
        )
    return (
        f"waits {seconds(then.start)} for {place}: job {j} runs {_times_faster(here, run)} there "
        f"({seconds(run)}) than on the free {free} ({seconds(here)}) and ends "
        f"{seconds(case.gain(j))} sooner"
    )


def _keeps_for(case: _Case, g: int) -> str:
    """Explain a choice to wait from which another job, g, gains most."""
    ours, theirs, other = case.said.plan[g], case.said.rival_plan[g], case.theirs
    start = f"job {other.job} ({seconds(other.seconds)})"
    if ours.pool == other.pool:
        head = f"leaves {case.names.pools[other.pool]} to {case.job(g)}"
    else:
        head = f"waits, which helps {case.job(g)} most"
    return (
        f"{head}: by the plan it starts {_there(ours, case.names)}; if {start} started now, "
        f"{_there(theirs, case.names)}"
    )


def _starts_it(case: _Case) -> str:
    """Explain a choice to start a job from which that job itself gains most."""
    j, ours = case.ours.job, case.said.plan[case.ours.job]
    then, place = case.said.rival_plan[j], case.names.pools[case.ours.pool]
    if case.theirs.job == j:
        run, other = then.end - then.start, case.names.pools[then.pool]
        faster = _times_faster(run, ours.end)
        return (
            f"puts job {j} on {place}: {faster} there ({seconds(ours.end)}) than on {other} "
            f"({seconds(run)})"
        )
    if case.theirs.job < 0:
        return (
            f"starts job {j} on {place} at once ({seconds(ours.end)}): after a wait it would start "
            f"{_there(then, case.names)} and end {seconds(case.gain(j))} later"
        )
    k, other = case.theirs.job, case.names.pools[case.theirs.pool]
    return (
        f"starts job {j} on {place} at once ({seconds(ours.end)}): after job {k} on {other} it "
        f"would start {_there(then, case.names)} and end {seconds(case.gain(j))} later"
    )


def _goes_before(case: _Case, g: int) -> str:
    """Explain a choice to start a shorter job than the alternative does, on the same pool.

    Job g gains most from it.
    """
    j, k, more = case.ours.job, case.theirs.job, case.later()
    ours, theirs = case.said.plan[g], case.said.rival_plan[g]
    return (
        f"starts job {j} ({seconds(case.ours.seconds)}) before job {k} "
        f"({seconds(case.theirs.seconds)}): behind that {more} "
        f"{'jobs' if more > 1 else 'job'} would start later, {case.job(g)} {_when(theirs)} "
        f"instead of {_when(ours)}"
    )


def _is_shorter(case: _Case, g: int) -> bool:
    """True if the alternative is a longer job on the same pool and would delay the start of g."""
    ours, theirs = case.ours, case.theirs
    if theirs.job in (-1, ours.job) or theirs.pool != ours.pool:
        return False
    later = case.said.rival_plan[g].start > case.said.plan[g].start + _SOON
    return later and theirs.seconds > ours.seconds


def _leaves_to(case: _Case, g: int) -> str:
    """Explain a choice to start a job from which another job, g, gains most."""
    ours, theirs = case.said.plan[g], case.said.rival_plan[g]
    return (
        f"{_does(case)}, which helps {case.job(g)} most: by the plan that one starts "
        f"{_there(ours, case.names)} instead of {_there(theirs, case.names)}"
    )


def _does(case: _Case) -> str:
    if case.ours.job < 0:
        return "waits"
    return f"starts job {case.ours.job} on {case.names.pools[case.ours.pool]}"


def _headline(case: _Case) -> str:
    """Explain the choice by the job that gains most from it, according to the plan."""
    jobs = list(case.said.plan)
    g = max(jobs, key=lambda j: (case.gain(j), j == case.ours.job, j == case.theirs.job))
    if case.gain(g) <= _SOON:
        return f"{_does(case)}: by the plan no job that waits now ends sooner for it"
    if case.ours.job < 0:
        return _waits_for_it(case) if g == case.theirs.job else _keeps_for(case, g)
    if _is_shorter(case, g):
        return _goes_before(case, g)
    return _starts_it(case) if g == case.ours.job else _leaves_to(case, g)


def _in_all(case: _Case) -> str:
    """Say which job loses most by the choice, and what all planned jobs save or lose together."""
    loser = min(case.said.plan, key=case.gain)
    lost, less = -case.gain(loser), case.theirs.drain_s - case.ours.drain_s
    pays = f"job {loser} ends {seconds(lost)} later; " if lost > _SOON else ""
    if abs(less) <= _SOON:
        total = "it makes no difference"
    else:
        total = f"it saves {seconds(less)}" if less > 0 else f"it costs {seconds(-less)}"
    count = len(case.said.plan)
    those = f"the {count} planned jobs together" if count > 1 else "the one planned job"
    whole = f"for {those} {total}, if no more came."
    line = f"in return, {pays}{whole}" if pays and less > _SOON else f"{pays}{whole}"
    return _capital(line)


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:]


def _of_the_network(case: _Case) -> list[str]:
    """Say how much more the network predicts for the alternative, and which features count most.

    The list is empty for a policy without a network.
    """
    if case.said.decision.network is None:
        return []
    more = case.theirs.cost_s - case.ours.cost_s
    line = f"The network predicts that the other would cost {seconds(more)} more"
    if case.theirs.drain_s < case.ours.drain_s - _SOON:
        line += ", with the jobs yet to come"
    told = [
        f"{word} {', '.join(names)}"
        for word, sign in (("for it spoke", 1), ("against it", -1))
        if (names := _large(case.said.shares, sign))
    ]
    return ["; ".join([line, *told]) + "."]


def _large(shares: dict[str, float], sign: int) -> list[str]:
    """Name the groups of features with the largest shares of one sign (1 = for the choice)."""
    return [
        f"{name} ({100 * abs(share):.0f} %)"
        for name, share in shares.items()
        if sign * share >= _WORTH
    ][:_NAMED]


def sentences(said: Explanation, names: Names) -> list[str]:
    """Return sentences that explain a decision, the main reason first."""
    decision = said.decision
    ours = decision.options[decision.chosen]
    if said.rival is None:
        return ["There was nothing else to do."]
    case = _Case(said, names, ours, decision.options[said.rival])
    whose = "Min-Min's choice" if said.rival == decision.planned else "the next best"
    return [
        f"Rather than {named(case.theirs, decision, names)}, {whose}:",
        f"{_capital(_headline(case))}.",
        _in_all(case),
        *_of_the_network(case),
    ]


def out_of_range(decision: Decision) -> list[str]:
    """Say which features of a decision are outside the training range; empty without a network."""
    found = decision.out_of_range
    if found is None:
        return []
    head = "Outside the training range:"
    if found.problem is not None or found.share is None:
        return [f"{head} {found.problem}."]
    count = f"{len(found.values)} of {found.features} features ({100 * found.share:.1f} %)"
    told = [
        f"{one.feature} {one.value:.3g} (trained on {one.low:.3g} to {one.high:.3g})"
        for one in found.values
    ]
    return [f"{head} {count}{': ' if told else ''}{', '.join(told)}."]
