"""The cards about behaviour tests: counts by kind, cases that fail, and several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping

from tenor.evaluation.behaviour.judge import PassCount
from tenor.reports import page
from tenor.reports.runs.behaviour import BehaviourData

_WORDS = "Written cases by kind. Hard kinds are left out of the last row."
_FAILED = "The number in brackets is the probability of positive; an arrow separates a text from its changed text."


def behaviour_cards(behaviour: BehaviourData) -> list[str]:
    """Return a table of the kinds, and a folded table of the cases that fail."""
    rows = [
        [name, count.passed, count.cases, _percent(count), "yes" if count.hard else ""]
        for name, count in _named(behaviour).items()
    ]
    cards = [page.card("Behaviour tests", page.table(["kind", "passed", "cases", "%", "hard"], rows, _WORDS))]
    if behaviour.failed:
        failed = [[case.kind, case.texts, case.expected, case.found] for case in behaviour.failed]
        inner = page.table(["kind", "text", "expected", "found"], failed, _FAILED)
        cards.append(page.folded(f"Behaviour tests that fail ({len(failed)})", inner))
    return cards


def behaviours_side_by_side(behaviours: Mapping[str, BehaviourData]) -> list[str]:
    """Return a table with the percentage of each kind (rows) and run (columns); nothing without runs."""
    named = {run: _named(behaviour) for run, behaviour in behaviours.items()}
    kinds = dict.fromkeys(kind for counts in named.values() for kind in counts)
    rows = [
        [kind, *(_percent(counts[kind]) if kind in counts else None for counts in named.values())] for kind in kinds
    ]
    words = "Percentage of the written cases that each run passes."
    return [page.card("Behaviour tests", page.table(["kind", *named], rows, words), wide=True)] if rows else []


def _named(behaviour: BehaviourData) -> dict[str, PassCount]:
    return {**behaviour.kinds, "all but hard": behaviour.all_but_hard}


def _percent(count: PassCount) -> str:
    return f"{100 * count.passed / count.cases:.1f}" if count.cases else "–"
