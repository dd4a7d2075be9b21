"""`tenor.check_behaviour`: the behaviour tests on a run; the result is stored in the run folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.labels import BINARY, STARS
from tenor.errors import RunError
from tenor.evaluation.behaviour.cases import read_cases
from tenor.evaluation.behaviour.judge import Behaviour, TextAnswer, judge
from tenor.progress import Shown, shown
from tenor.runtime.model import SentimentModel, load
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json

NAME = "behaviour.json"


def check_behaviour(run: str | Path, progress: Shown = None) -> Behaviour:
    """Try a run on written cases: negation, contrast, typos, names that must not matter, and others.

    The result is also written to `behaviour.json` in the run folder, where `tenor.report` finds it. The cases are
    English, so the result says nothing about models of other languages.

    Args:
        run: A folder made by `tenor train`, with the classes negative and positive, or with five stars. For stars, the
            probability of positive is that of 4 and 5 stars, divided by that of 1, 2, 4 and 5 stars.
        progress: Warns if the model knows no word of some texts.

    Returns:
        The passed cases of each kind, and the cases that fail.

    Raises:
        RunError: The run folder cannot be used, or the model has other classes.

    >>> tenor.check_behaviour("run").share  # doctest: +SKIP
    0.87
    """
    model, cases = load(run), read_cases()
    texts = list(dict.fromkeys(text for case in cases for text in case.texts))
    answers, unknown = answer(model, texts, run)
    if unknown:
        warning = f"the model knows no word of {unknown:,} of the {len(texts):,} texts of the behaviour tests"
        shown(progress).warn(warning)
    result = judge(cases, dict(zip(texts, answers, strict=True)))
    if Path(run).is_dir():  # a compact model has no folder
        write_bytes(Path(run) / NAME, (strict_json(result.as_dict(), indent=1) + "\n").encode())
    return result


def answer(model: SentimentModel, texts: list[str], run: str | Path) -> tuple[list[TextAnswer], int]:
    """Return what the model says about each text, and the number of texts without any known word."""
    predictions, probabilities = model.predict(texts), model.probabilities(texts)
    unknown = sum(not prediction.known_words for prediction in predictions)
    if model.classes == BINARY:
        labels = [prediction.label for prediction in predictions]
        return list(map(TextAnswer, labels, probabilities[:, 1].tolist())), unknown
    if model.classes == STARS:
        chances = positive_of_stars(probabilities).tolist()
        return [TextAnswer(BINARY[chance > 0.5], chance) for chance in chances], unknown
    raise RunError(
        f"has the classes {', '.join(model.classes):.80}, and the behaviour tests need negative and positive, or stars",
        where=run,
        remedy="give a run whose data was prepared with --labels binary or stars",
    )


def positive_of_stars(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the probability of positive, from those of 1 to 5 stars; 3 stars say nothing about it.

    Args:
        probabilities: (rows, 5)
    """
    exact = probabilities.astype(np.float64)
    high, low = exact[:, 3:].sum(axis=1), exact[:, :2].sum(axis=1)
    shares: NDArray[np.float64] = np.divide(high, high + low, out=np.full(len(exact), 0.5), where=high + low > 0)
    return shares
