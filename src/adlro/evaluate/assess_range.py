"""How much of what ADLRO looks at on an operator's history is outside of what it was trained on."""

from __future__ import annotations

from adlro.evaluate.assess import OURS, REFERENCE, Study
from adlro.evaluate.out_of_range import Measured, OutOfRange, compile_recording, measure
from adlro.policies import registry


def measure_study(study: Study) -> OutOfRange | None:
    """Play a run under each assumption again, and compare its features with the training range.

    Each of these runs is of another part of the history, as far as it has parts.
    """
    seeds, cases = study.windows.seeds, zip(study.cases, study.assumptions, strict=False)
    settings = [case.setting for case, (_, source) in cases if source != REFERENCE]
    compile_recording()
    return measure(
        Measured(setting, registry.load(OURS, setting), seeds[i % len(seeds)])
        for i, setting in enumerate(settings)
    )
