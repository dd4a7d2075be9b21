"""A map of the commonest words of word vectors: similar words stand together, coloured by a classifier's sentiment."""

from __future__ import annotations

import numpy as np

from tenor.embedding.layout import lay_out, move_apart
from tenor.embedding.vectors import Vectors
from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, INK, SERIES, canvas
from tenor.reports.values import readable
from tenor.reports.vectors_data import MOST_WORDS, Doubles

WIDTH, HEIGHT, LETTER = 11.2, 9.0, 8  # inches, and points
LONGEST = 24  # characters of a word on the map
NEUTRAL = 0.2  # a sentiment between -NEUTRAL and NEUTRAL has no colour


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
        return finish(figure, title, caption, _data(words, places, sentiments), wide=True)


def _data(words: list[str], places: Doubles, sentiments: Doubles | None) -> PlotData:
    head, rows = ["word", "x", "y"], [[word, *place] for word, place in zip(words, places.tolist(), strict=True)]
    if sentiments is None:
        return PlotData(head, rows)
    known = [None if np.isnan(value) else value for value in sentiments.tolist()]
    return PlotData([*head, "sentiment"], [[*row, value] for row, value in zip(rows, known, strict=True)])


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
