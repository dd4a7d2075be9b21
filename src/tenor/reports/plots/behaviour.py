"""The share of behaviour tests that pass, as one bar per kind."""

from __future__ import annotations

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, INK, SERIES, canvas
from tenor.reports.runs.behaviour import BehaviourData
from tenor.reports.values import tick


def shares_by_kind(behaviour: BehaviourData) -> Plot | None:
    """Plot the share of the cases that pass, by kind; bars of hard kinds are pale."""
    kinds = list(behaviour.kinds.items())
    if not kinds:
        return None
    shares = [count.passed / count.cases for _, count in kinds]
    with canvas(5.4, 0.8 + 0.28 * len(kinds)) as figure:
        axes = figure.subplots()
        colours = [FAINT if count.hard else SERIES[0] for _, count in kinds]
        axes.barh(range(len(kinds)), shares, color=colours, height=0.6)
        for place, share in enumerate(shares):
            axes.annotate(f"{share:.0%}", (share, place), (4, 0), textcoords="offset points", va="center", color=INK)
        axes.set(xlabel="share of cases that pass", xlim=(0, 1.12), ylim=(len(kinds) - 0.5, -0.5))
        axes.set_yticks(range(len(kinds)), [tick(name, 24) for name, _ in kinds])
        axes.grid(False, axis="y")
        total = behaviour.all_but_hard
        words = ", ".join(f"{name} {count.passed} of {count.cases}" for name, count in kinds)
        hard = [name for name, count in kinds if count.hard]
        without = f" Without the hard kinds ({', '.join(hard)}, pale):" if hard else " In total:"
        words = f"Cases that pass: {words}.{without} {total.passed} of {total.cases}."
        data = [[name, count.passed, count.cases, count.hard] for name, count in kinds]
        return finish(figure, "Behaviour tests by kind", words, PlotData(["kind", "passed", "cases", "hard"], data))
