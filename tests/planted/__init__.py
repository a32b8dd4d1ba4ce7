"""Histories with three planted troubles, written without sight of the code that must find them.

`write(folder, seed)` draws a site and some 1,300 GPU jobs, schedules them by the site's own
priority weights and writes what Slurm would print. In every history one GPU model is hardly used,
one account is starved by a priority weight, and one partition is overloaded; the returned Planted
names them. How it is done varies by seed:

- The idle model shares a partition with another that jobs ask for by name (`unnamed`), has a
  partition that nearly nobody submits to (`own-partition`), or one that a single account may use
  (`reserved`).
- The account has jobs of one GPU where PriorityWeightJobSize is huge (`size`), or submits to a
  partition of low PriorityJobFactor, on the nodes of the overloaded one, where
  PriorityWeightPartition is huge (`partition`).
- The jobs of the overloaded partition ask for 10 to 30 % more GPU-hours than its nodes have between
  the first and the last submission; its queue drains afterwards.
"""

from pathlib import Path
from typing import NamedTuple

from tests.planted import backfill, figures, jobs, site, texts
from tests.planted.backfill import Run
from tests.planted.figures import Figures
from tests.planted.site import Site
from tests.truth.slurm_text import show_nodes

__all__ = ["SEEDS", "Figures", "Planted", "Run", "Site", "make", "write"]
SEEDS = range(20)
CURES = {  # settings that starve an account: lowering the first or changing the second helps it
    "size": ("PriorityWeightJobSize", "PriorityFavorSmall"),
    "partition": ("PriorityWeightPartition", "PriorityJobFactor"),
}


class Planted(NamedTuple):
    """The files of a history, and what was planted in it."""

    sacct: Path
    nodes: Path
    config: Path
    site: Site
    runs: tuple[Run, ...]  # in order of submission
    equal: tuple[Run, ...]  # the same jobs without the weight that starves the account
    figures: Figures

    @property
    def models(self):
        """Gres types of the site, in order of nodes."""
        return tuple(dict.fromkeys(node.gpu for node in self.site.nodes))

    @property
    def idle_model(self):
        """The Gres type that nearly nobody uses."""
        return self.site.idle_model

    @property
    def starved_account(self):
        """The account that a weight pushes to the end."""
        return self.site.starved

    @property
    def overloaded_partition(self):
        """The partition that is asked for more than its nodes have."""
        return self.site.busy

    @property
    def sharing(self):
        """The partition on the same nodes as the overloaded one, or none."""
        return {self.site.low} - {""}

    @property
    def cures(self):
        """The weight that starves the account, and the other setting that makes it do so."""
        return CURES[self.site.starved_by]


def make(seed):
    """(site, runs, runs without the weight that starves the account) of a seed."""
    drawn = site.draw(seed)
    asked = jobs.draw(drawn, seed)
    runs = backfill.schedule(drawn, asked, drawn.weights)
    return drawn, tuple(runs), tuple(backfill.schedule(drawn, asked, drawn.without_weight))


def write(folder, seed):
    """Write sacct.txt, nodes.txt and config.txt of a seed below `folder`, created if absent."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn, runs, equal = make(seed)
    written = {
        "sacct.txt": texts.sacct(drawn, runs),
        "nodes.txt": show_nodes(drawn.nodes),
        "config.txt": texts.config(drawn),
    }
    for name, text in written.items():
        (folder / name).write_text(text)
    paths = (folder / name for name in written)
    return Planted(*paths, drawn, runs, equal, figures.measure(drawn, runs, equal))
