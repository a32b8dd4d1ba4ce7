"""Names of a history's jobs, users, accounts, partitions and nodes as a page shows them.

An anonymous page shows codes in their place: job J17, user U3, account A1, partition P2, node N4.
The same code stands for the same thing throughout a page. Labels are plain text; who puts one into
HTML or a chart escapes it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from adlro.errors import printable
from adlro.model.history import History
from adlro.workloads import history_file
from adlro.workloads.setting import Setting

UNKNOWN = "unknown"
_LONGEST = 60  # characters of a label; longer ones are cut
_CODES = {"user": "U", "account": "A", "queue": "P"}  # column of the history -> letter of its codes
_HIDDEN = "…"  # in place of a name without a code
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def shortened(words: str, most: int = _LONGEST) -> str:
    """Return text without control or bidirectional characters, cut if it is too long."""
    clean = printable(words)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


class JobLabel(NamedTuple):
    """How a page names a job of a history; "" = not recorded, or not shown."""

    id: str
    name: str
    user: str
    account: str
    partition: str


class Labels:
    """Labels of all that a history names, by row or by code of the history."""

    def __init__(self, history: History, nodes: Sequence[str] = (), *, anonymous: bool) -> None:
        """Prepare the labels; `nodes` are the names of the cluster's nodes, in its order."""
        self.history, self.is_anonymous = history, anonymous
        self._nodes = nodes

    def job(self, row: int) -> JobLabel:
        """Return the label of the job in a row of the history."""
        return JobLabel(
            self._id(row),
            "" if self.is_anonymous else shortened(self.history.word("name", row)),
            *(self._word(column, int(getattr(self.history, column)[row])) for column in _CODES),
        )

    def words(self, column: str) -> list[str]:
        """Return the labels of the codes of a column, with one for jobs without a code at the end.

        column: user, account or queue; words of any other column, such as GPU types, stay as they
        are.
        """
        labels = [self._word(column, code) for code in range(len(self.history.tables[column]))]
        return [*labels, UNKNOWN]

    def nodes(self) -> list[str]:
        """Return the labels of the cluster's nodes, in its order."""
        if self.is_anonymous:
            return [f"N{i + 1}" for i in range(len(self._nodes))]
        return [shortened(name) for name in self._nodes]

    def sentence(self, words: str) -> str:
        """Return a sentence in which codes stand for quoted names, if the page is anonymous.

        Quoted words that have no code are hidden.
        """
        return _QUOTED.sub(self._code_of_quoted, words) if self.is_anonymous else words

    def _id(self, row: int) -> str:
        if self.is_anonymous:
            return f"J{row + 1}"
        return shortened(self.history.id[row]) if self.history.id else f"number {row + 1:,}"

    def _word(self, column: str, code: int) -> str:
        if code < 0:
            return ""
        if self.is_anonymous and column in _CODES:
            return f"{_CODES[column]}{code + 1}"
        return shortened(self.history.tables[column][code])

    @functools.cached_property
    def _code_of(self) -> dict[str, str]:
        codes = {name: f"J{row + 1}" for row, name in enumerate(self.history.id)}
        for column, letter in _CODES.items():
            words = enumerate(self.history.tables[column])
            codes |= {word: f"{letter}{code + 1}" for code, word in words}
        return codes

    def _code_of_quoted(self, found: re.Match[str]) -> str:
        try:
            name = str(ast.literal_eval(found[0]))
        except (SyntaxError, ValueError):
            return _HIDDEN
        return self._code_of.get(name, _HIDDEN)


def labels_of(setting: Setting, *, anonymous: bool = False) -> Labels | None:
    """Return the labels of a scenario's history; None = it has no history."""
    recorded = setting.scenario.history
    if recorded is None:
        return None
    names = setting.layout.node_names
    return Labels(history_file.history_of(recorded), names, anonymous=anonymous)
