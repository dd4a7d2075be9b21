"""Check that the labels of a raw file mean the same as those of the run's data."""

from __future__ import annotations

from collections.abc import Iterable

from tenor.corpus.labels import BINARY, NEUTRAL, LabelRule, is_number, sort_key
from tenor.errors import UsageError
from tenor.evaluation.survey import SHOWN, Survey

MAX_UNKNOWN = 0.5  # share of rows with unknown labels above which the labels cannot mean the same
MAX_UNKNOWN_ONE_CLASS = 0.1  # if all known labels are of one class, as when labels 0 and 1 meet a rule for stars


def check_labels(survey: Survey, rule: LabelRule, where: str) -> str:
    """Refuse a file whose labels cannot be those of the run's data.

    A number within the rule's range that stands for no class is neutral: for example 3 stars, where 1 and 2 are
    negative and 4 and 5 positive. Any other label that the rule does not list is unknown.

    Args:
        survey: The labels of the file.
        rule: The label rule of the run's data.
        where: The name of the file.

    Returns:
        A warning if some labels are unknown, otherwise an empty string.

    Raises:
        UsageError: Most rows have unknown labels, or many have and all known labels are of one class.
    """
    unknown = {name: rows for name, rows in survey.labels.items() if not _is_known(name, rule)}
    num_unknown, read = sum(unknown.values()) + survey.num_invalid, survey.rows.read
    if not num_unknown:
        return ""
    classes = {rule.label(name) for name in survey.labels} - {NEUTRAL}
    what = (
        f"{num_unknown:,} of {read:,} rows have labels that the run does not know "
        f"({_listed([*unknown, *survey.invalid])})"
    )
    if rule.classes == BINARY:
        meaning = "; ".join(f"{_listed(names)} for {name}" for name, names in rule.as_dict().items())
        what = f"{what}; the run's data had {meaning}"
    if num_unknown > MAX_UNKNOWN * read or (len(classes) == 1 and num_unknown > MAX_UNKNOWN_ONE_CLASS * read):
        seen = _listed([*survey.labels, *survey.invalid])
        remedy = (
            "say what they mean with --negative and --positive, for example 1,2 and 4,5"
            if rule.classes == BINARY
            else f"give a file with the labels {_listed(rule.classes)}"
        )
        raise UsageError(f"{what}; the file has {seen}", where=where, remedy=remedy)
    return f"{where}: {what}; these rows are not measured"


def _is_known(name: str, rule: LabelRule) -> bool:
    """Whether the rule lists the label, or the label is a number between the listed ones."""
    if rule.label(name) != NEUTRAL:
        return True
    numbers = [float(value) for values in rule.values for value in values if is_number(value)]
    return bool(numbers) and is_number(name) and min(numbers) <= float(name) <= max(numbers)


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(set(names), key=sort_key)
    return ", ".join(ordered[:SHOWN]) + (", …" if len(ordered) > SHOWN else "")
