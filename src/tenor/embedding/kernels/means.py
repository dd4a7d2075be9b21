"""The compiled loop for inputs that are means of several rows: CBOW, and words that are made of n-grams.

A window has one input vector, the mean of its rows. It predicts one or more words, and not the noise words. With CBOW
the rows are those of the neighbours, and the word is predicted. With skip-gram the rows are those of the word, and its
neighbours are predicted; the noise words count once for each neighbour, because all pairs of the window share them.
As in word2vec and fastText, every row moves by the whole gradient of the mean, so the mean itself moves by it, too.
"""

# ruff: noqa: PLR0912, PLR0915 - compiled loops stay in one function

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import fast_compiled
from tenor.embedding.kernels.small import S32, below, draw, noise_word, sigmoid, softplus
from tenor.embedding.kernels.windows import CHUNK, LOSS_EVERY


@fast_compiled
def train_block_of_means(
    words: Any,  # int32 word numbers, BREAK between texts
    inputs: Any,  # float32 (rows, dim), changed in place
    outputs: Any,  # float32 (words, dim), changed in place
    keep: Any,  # uint32 thresholds: a word is kept if a random number is below
    noise: Any,  # uint64, see noise_table
    state: Any,  # uint64 (1,), the random generator
    window: Any,
    negative: Any,
    rates: Any,  # float64 (2,), the learning rate at the start and the end of the block
    is_cbow: Any,
    starts: Any,  # int64 (words + 1,): word i has the rows starts[i] to starts[i + 1] of `rows`
    rows: Any,  # int32
) -> Any:
    """Train on one block of words; returns the sum of the losses that were looked at, and their number."""
    dim = inputs.shape[1]
    most = 2 * window + negative
    mean, moved = np.zeros(dim, np.float32), np.zeros(dim, np.float32)
    push = np.zeros(most, np.float32)  # learning rate x (label - prediction) of each output word
    near_word, far_word = np.zeros(2 * window, np.int64), np.zeros(most, np.int64)
    text = np.empty(CHUNK, np.int64)
    loss, num_losses, num_windows, at = 0.0, 0.0, 0, 0
    while at < words.shape[0]:
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * at / words.shape[0])
        length = 0
        while at < words.shape[0] and length < CHUNK:
            word = words[at]
            at += 1
            if word < 0:
                if length > 0:
                    break
                continue
            if (draw(state) >> S32) < keep[word]:
                text[length] = word
                length += 1
        for middle in range(length):
            reach = below(state, window) + 1
            count = 0
            for place in range(max(0, middle - reach), min(length, middle + reach + 1)):
                if place != middle:
                    near_word[count] = text[place]
                    count += 1
            if count == 0:
                continue
            num_windows += 1
            if is_cbow:
                num_wanted = 1
                far_word[0] = text[middle]
                num_sources = count
            else:
                num_wanted = count
                for other in range(count):
                    far_word[other] = near_word[other]
                near_word[0] = text[middle]
                num_sources = 1
            num_outputs = num_wanted + negative
            for other in range(num_wanted, num_outputs):
                far_word[other] = noise_word(state, noise)
            mean[:] = 0.0
            num_rows = 0
            for source in range(num_sources):
                word = near_word[source]
                for place in range(starts[word], starts[word + 1]):
                    row = rows[place]
                    for i in range(dim):
                        mean[i] += inputs[row, i]
                    num_rows += 1
            share = np.float32(1.0 / num_rows)
            for i in range(dim):
                mean[i] *= share
                moved[i] = 0.0
            is_told = num_windows % LOSS_EVERY == 0
            for other in range(num_outputs):
                row = far_word[other]
                weight = np.float32(1.0)
                if other >= num_wanted:
                    weight = np.float32(num_wanted)
                    for wanted in range(num_wanted):
                        if far_word[wanted] == row:
                            weight = np.float32(0.0)  # a wanted word drawn as noise
                            break
                if weight == 0.0:
                    push[other] = 0.0
                    continue
                total = np.float32(0.0)
                for i in range(dim):
                    total += mean[i] * outputs[row, i]
                label = np.float32(1.0) if other < num_wanted else np.float32(0.0)
                push[other] = rate * weight * (label - sigmoid(total))
                if is_told:
                    loss += weight * softplus(-total if other < num_wanted else total)
                    num_losses += float(weight)
            for other in range(num_outputs):
                row, step = far_word[other], push[other]
                for i in range(dim):
                    moved[i] += step * outputs[row, i]
            for other in range(num_outputs):
                row, step = far_word[other], push[other]
                for i in range(dim):
                    outputs[row, i] += step * mean[i]
            for source in range(num_sources):
                word = near_word[source]
                for place in range(starts[word], starts[word + 1]):
                    row = rows[place]
                    for i in range(dim):
                        inputs[row, i] += moved[i]
    return loss, num_losses
