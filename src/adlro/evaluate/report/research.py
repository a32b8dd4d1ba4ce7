"""The section for researchers: further metrics and tests, fairness, regression and HyperScore."""

from __future__ import annotations

from adlro.evaluate.comparison import Comparison
from adlro.evaluate.report import charts, regression, table
from adlro.evaluate.report.frame import Figures, Section, paragraph, text
from adlro.evaluate.stats import FEWEST_SEEDS, MOST_SEEDS

KEY = "research"
_HYPERSCORE = (
    "HyperScore is here because the paper defines it. It squeezes nearly all policies into the "
    "last percent above 100: two whose mean JCT differs by a factor of ten can both read 100.0. "
    "A difference in it says little, and the lack of one says nothing; compare completion times."
)
_REGRESSION = (
    "Ordinary least squares of the mean JCT of a run on how busy the GPUs were, how much work "
    "arrived and how many jobs waited. It describes what goes along with a long JCT in these runs; "
    "it does not say what causes it: a long queue and a long JCT are nearly the same thing."
)
_STATISTICS = (
    f"Intervals of means are Student's t over seeds. Those of differences are from a studentised "
    f"bootstrap of whole seeds (fewer than {FEWEST_SEEDS} or more than {MOST_SEEDS:,} seeds: "
    "Student's t). p: Wilcoxon's signed ranks, two-sided, corrected by Holm for all rivals of the "
    "best of a table. Effect sizes are in the JSON (--json)."
)


def section(result: Comparison, figures: Figures) -> Section:
    """Return the section with all that matters to researchers rather than operators."""
    parts = []
    for title, made in table.research_tables(result):
        parts += [f"<h3>{text(title)}</h3>", made]
    return Section(
        KEY,
        "For researchers",
        [
            *parts,
            paragraph(_STATISTICS),
            '<h3 id="fairness">Fairness</h3>',
            figures.add(charts.fairness(result)),
            '<h3 id="regression">Regression</h3>',
            paragraph(_REGRESSION),
            regression.coefficients(result),
            figures.grid(regression.scatters(result)),
            '<h3 id="hyperscore">HyperScore</h3>',
            paragraph(_HYPERSCORE),
            figures.add(charts.hyperscore(result)),
        ],
    )
