"""Why a model decides as it does: what each word or n-gram of a text adds to the logit.

The wide part is a sum over n-grams, so its contributions are exact. The convolution with max pooling is piecewise
linear: each filter that is active reads the words of one window, and its value is a sum over these words. So its
contributions are exact as well, and add up to the logit. For other cells, the contribution of a word is what the logit
loses without it (occlusion).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenor.models.rows import shortened
from tenor.runtime.combined import CombinedParts
from tenor.runtime.deep import DeepLogits

Ids = NDArray[np.int32]
Values = NDArray[np.float64]


class ExplainedPiece(NamedTuple):
    """A word or an n-gram of a text.

    Attributes:
        start: Where it begins in the text, in characters.
        end: Where it ends.
        piece: That part of the text.
        contribution: What it adds to the logit; above 0 if it speaks for the class that is explained.
    """

    start: int
    end: int
    piece: str
    contribution: float


class Ngram(NamedTuple):
    """An n-gram of the wide part."""

    places: list[int]  # the tokens at which it begins
    size: int  # tokens
    values: Values  # (outputs,)


def toward(values: Values, label: int) -> Values:
    """What values (…, outputs) add to the logit of a class, from the values for each output.

    With two classes there is one output, the logit of the second class. With more, the logit of a class counts relative
    to the mean of all classes.
    """
    if values.shape[-1] == 1:
        return values[..., 0] if label == 1 else -values[..., 0]
    relative: Values = values[..., label] - values.mean(axis=-1)
    return relative


def word_values(parts: CombinedParts, tokens: Ids) -> Values:
    """(tokens, outputs): what each word adds to the combined logits; an n-gram is divided among its words.

    Args:
        parts: The model.
        tokens: The ids of one text, at least one.
    """
    values = deep_values(parts, tokens)
    for ngram in wide_ngrams(parts, tokens):
        share = ngram.values / (ngram.size * len(ngram.places))
        for place in ngram.places:
            values[place : place + ngram.size] += share
    return values


def wide_ngrams(parts: CombinedParts, tokens: Ids) -> list[Ngram]:
    """The n-grams of a text that the wide part knows, with all places where they occur."""
    found = parts.contributions(tokens, np.array([len(tokens)], np.int32))
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    words = tokens.tolist()
    for size in set(found.sizes.tolist()):
        for first in range(len(words) - size + 1):
            places[tuple(words[first : first + size])].append(first)
    ngrams = zip(found.firsts.tolist(), found.sizes.tolist(), found.values, strict=True)
    return [Ngram(places[tuple(words[first : first + size])], size, values) for first, size, values in ngrams]


def deep_values(parts: CombinedParts, tokens: Ids) -> Values:
    """(tokens, outputs): what each word adds to the combined logits by way of the deep part."""
    values = np.zeros((len(tokens), parts.spec.num_outputs))
    if parts.deep is None:
        return values
    length = np.array([len(tokens)], np.int32)
    read, _ = shortened(np.arange(len(tokens), dtype=np.int32), length, parts.deep.spec.length)
    own = parts.deep.word_values(tokens[read])
    values[read] = parts.scales[-1] * (_occluded(parts.deep, tokens[read]) if own is None else own)
    return values


def _occluded(deep: DeepLogits, tokens: Ids) -> Values:
    """What the logits lose without each word."""
    count = len(tokens)
    if count == 1:
        return np.zeros((1, deep.num_outputs))
    without = np.concatenate([np.delete(tokens, place) for place in range(count)])
    whole = deep(tokens, np.array([count], np.int32))
    return whole - deep(without, np.full(count, count - 1, np.int32))
