"""A map of the commonest words of word vectors: similar words stand together, coloured by a classifier's sentiment."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.embedding.layout import lay_out, move_apart
from tenor.embedding.vectors import CONFIG, CONFIG_BYTES, KIND, Vectors, load_vectors
from tenor.errors import RunError, TenorError, UsageError
from tenor.prediction.model import SentimentModel, load
from tenor.reports import page
from tenor.reports.plots import Plot
from tenor.reports.svg import FAINT, INK, SERIES, canvas, inline
from tenor.reports.values import readable
from tenor.store.atomic import check_target, write_bytes
from tenor.store.trusted import read_json

MOST_WORDS, FEWEST_WORDS = 300, 4
WIDTH, HEIGHT, LETTER = 11.2, 9.0, 8  # inches, and points
LONGEST = 24  # characters of a word on the map
NEUTRAL = 0.2  # a sentiment between -NEUTRAL and NEUTRAL has no colour
_UNKNOWN = np.nan  # the sentiment of a word that the classifier does not know

Doubles = npt.NDArray[np.float64]


def holds_vectors(path: Path) -> bool:
    """Whether a folder was made by `tenor embed`."""
    try:
        return bool(read_json(path / CONFIG, CONFIG_BYTES, RunError).get("kind") == KIND)
    except (OSError, TenorError):
        return False


def write_word_map(vectors: Path, out: Path, run: Path | None = None) -> Path:
    """Write one self-contained HTML file with the map.

    Args:
        vectors: A folder made by `tenor embed`.
        out: The file to write.
        run: A run folder; its classifier colours the words.

    Raises:
        RunError: The vectors or the run cannot be read, or the file cannot be written.
        UsageError: There are too few words for a map, or `out` is not a path that can be written.
    """
    check_target(out)
    table = load_vectors(vectors)
    words = table.words[:MOST_WORDS]
    if len(words) < FEWEST_WORDS:
        remedy = f"train on a text with {FEWEST_WORDS} words or more"
        raise UsageError(f"has only {len(words)} words, too few for a map", where=vectors, remedy=remedy)
    sentiments = word_sentiments(load(run), words) if run is not None else None
    config = read_json(vectors / CONFIG, CONFIG_BYTES, RunError)
    try:
        write_bytes(out, render(vectors.resolve().name, table, sentiments, config).encode("utf-8", "replace"))
    except OSError as error:
        what = f"cannot write the report: {error.strerror}"
        raise RunError(what, where=out, remedy="choose another path with --out") from error
    return out


def word_sentiments(model: SentimentModel, words: Any) -> Doubles:
    """What the classifier makes of each word as a review of its own: from -1 (its first class) to 1 (its last).

    A word that the classifier does not know has no sentiment (NaN).
    """
    scores = model.probabilities(list(words)) @ np.linspace(-1.0, 1.0, len(model.classes))
    known = [prediction.known_words > 0 for prediction in model.predict(list(words))]
    return np.where(known, scores, _UNKNOWN)


def render(name: str, table: Vectors, sentiments: Doubles | None, config: dict[str, Any]) -> str:
    """Return the whole page."""
    drawing = draw_map(table, sentiments)
    facts = f"{len(table.words):,} words of {table.matrix.shape[1]} numbers"
    cards = [page.plot(drawing)]
    for title in ("result", "settings"):
        if isinstance(values := config.get(title), dict):
            cards.append(page.card(title.capitalize(), page.pairs(values)))
    body = [
        f'<header><h1>{escape(name)}</h1><p class="faint">Word vectors by Tenor: {escape(facts)}</p></header>',
        f'<div class="grid">{"".join(cards)}</div>',
        "<footer>Written by Tenor. This page is self-contained: it loads nothing from the network.</footer>",
    ]
    return page.page(f"{name} – Tenor word vectors", body)


def draw_map(table: Vectors, sentiments: Doubles | None) -> Plot:
    """Draw the commonest words, which come first in the vocabulary."""
    words = list(table.words[:MOST_WORDS])
    labels = [_label(word) for word in words]
    places = _places(table, labels)
    colours = [(INK, 1.0)] * len(words) if sentiments is None else [_look(float(value)) for value in sentiments]
    with canvas(WIDTH, HEIGHT) as figure:
        axes = figure.subplots()
        for label, (x, y), (colour, strength) in zip(labels, places, colours, strict=True):
            axes.text(x, y, label, color=colour, alpha=strength, fontsize=LETTER, ha="center", va="center")
        axes.set(xlim=(0, WIDTH), ylim=(places[:, 1].min() - 0.2, places[:, 1].max() + 0.2))
        axes.set_axis_off()
        if sentiments is not None:
            keys = {"negative": SERIES[1], "positive": SERIES[0], "neutral or unknown": FAINT}
            handles = [axes.plot([], [], "o", color=colour, label=name)[0] for name, colour in keys.items()]
            figure.legend(handles=handles, fontsize=9, loc="outside upper right", ncols=len(keys))
        title = f"Map of the {len(words)} commonest words"
        caption = _caption(words, sentiments)
        return Plot(title, inline(figure, "map", title, caption), caption, wide=True)


def _places(table: Vectors, labels: list[str]) -> Doubles:
    """Where the words stand, in inches, so that none covers another."""
    places = lay_out(table.directions[: len(labels)])
    low, high = places.min(axis=0), places.max(axis=0)
    margin, room = np.array([0.6, 0.3]), np.array([WIDTH, HEIGHT])
    places = margin + (places - low) / np.maximum(high - low, 1e-9) * (room - 2 * margin)
    inch = LETTER / 72  # the height of a letter; its width is about 0.6 of that
    sizes = np.array([[0.6 * inch * (len(label) + 0.5), 1.1 * inch] for label in labels])
    return move_apart(places, sizes)


def _look(sentiment: float) -> tuple[str, float]:
    """Colour and opacity: the stronger the sentiment, the stronger the colour."""
    if np.isnan(sentiment) or abs(sentiment) < NEUTRAL:
        return FAINT, 0.8
    return SERIES[0] if sentiment > 0 else SERIES[1], 0.55 + 0.45 * abs(sentiment)


def _label(word: str) -> str:
    shown = readable(word)
    return (shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…").replace("$", r"\$")


def _caption(words: list[str], sentiments: Doubles | None) -> str:
    caption = "Words with similar vectors stand together (t-SNE); directions and distances far apart mean nothing."
    if sentiments is None:
        return caption
    sides = {"negative": -sentiments, "positive": sentiments}
    parts = [f"most {side}: {', '.join(_strongest(words, values)) or 'none'}" for side, values in sides.items()]
    return f"{caption} The colour is what the classifier makes of the word alone; {'; '.join(parts)}."


def _strongest(words: list[str], values: Doubles, count: int = 5) -> list[str]:
    """The words with the largest values."""
    order = np.argsort(-np.nan_to_num(values), kind="stable")[:count]
    return [readable(words[place]) for place in order if values[place] >= NEUTRAL]
