"""The compiled loop of skip-gram: one window at a time, its noise words shared by all of its pairs.

A window is a word and its neighbours. Skip-gram trains each neighbour's input vector to predict the word and not the
noise words. All pairs of a window share the same noise words (Ji et al. 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory"): so the window is three small matrix products over rows that stay in the cache, instead of many dot
products over rows that do not. The rows are copied to memory whose width is a multiple of LANES, and products are
computed in tiles of 2 × 4 rows, so that the compiler uses whole vectors and loads each number for several products.
While one window is computed, the rows of the next one are fetched.

Several processes call this function on the same tables without locks (Recht et al. 2011, "Hogwild!"): windows seldom
share words, and a lost update is noise.
"""

# ruff: noqa: PLR0912, PLR0915 - compiled loops stay in one function

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import fast_compiled, fast_inlined
from tenor.embedding.kernels.small import S32, below, draw, noise_word, read_ahead, sigmoid, softplus

BREAK = -1  # between two texts: windows do not cross it
CHUNK = 1024  # words of a text that are looked at together
LANES = 16  # numbers of the widest vectors of today's processors
TILE = 4  # rows of a product that are computed together
LOSS_EVERY = 16  # windows between two whose loss is computed


@fast_inlined
def dot_products(near: Any, far: Any, num_near: Any, num_far: Any, products: Any) -> None:
    """products[p, f] = near[p] · far[f]; `near` has an even number of rows, `num_far` is a multiple of TILE."""
    for p in range(0, num_near, 2):
        for f in range(0, num_far, TILE):
            a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
            e, g, h, k = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
            for i in range(near.shape[1]):
                x, y = near[p, i], near[p + 1, i]
                a += x * far[f, i]
                b += x * far[f + 1, i]
                c += x * far[f + 2, i]
                d += x * far[f + 3, i]
                e += y * far[f, i]
                g += y * far[f + 1, i]
                h += y * far[f + 2, i]
                k += y * far[f + 3, i]
            products[p, f], products[p, f + 1], products[p, f + 2], products[p, f + 3] = a, b, c, d
            products[p + 1, f], products[p + 1, f + 1], products[p + 1, f + 2], products[p + 1, f + 3] = e, g, h, k


@fast_inlined
def add_products(table: Any, rows: Any, num_rows: Any, weights: Any, others: Any, num_others: Any, change: Any) -> None:
    """table[rows[r]] += Σ weights[r, o] · others[o]; weights beyond `num_rows` and `num_others`, in a tile, are 0."""
    for r in range(0, num_rows, 2):
        change[:] = 0.0
        for o in range(0, num_others, TILE):
            a, b, c, d = weights[r, o], weights[r, o + 1], weights[r, o + 2], weights[r, o + 3]
            e, f, g, h = weights[r + 1, o], weights[r + 1, o + 1], weights[r + 1, o + 2], weights[r + 1, o + 3]
            for i in range(others.shape[1]):
                w, x, y, z = others[o, i], others[o + 1, i], others[o + 2, i], others[o + 3, i]
                change[0, i] += a * w + b * x + c * y + d * z
                change[1, i] += e * w + f * x + g * y + h * z
        row, next_row = rows[r], rows[r + 1]  # read once: the compiler cannot know that `table` is not `rows`
        for i in range(table.shape[1]):
            table[row, i] += change[0, i]
        if r + 1 < num_rows:
            for i in range(table.shape[1]):
                table[next_row, i] += change[1, i]


@fast_compiled
def train_block(
    words: Any,  # int32 word numbers, BREAK between texts
    inputs: Any,  # float32 (words, dim), changed in place
    outputs: Any,  # float32 (words, dim), changed in place
    keep: Any,  # uint32 thresholds: a word is kept if a random number is below
    noise: Any,  # uint64, see noise_table
    state: Any,  # uint64 (1,), the random generator
    window: Any,
    negative: Any,
    rates: Any,  # float64 (2,), the learning rate at the start and the end of the block
) -> Any:
    """Train on one block of words; returns the sum of the losses that were looked at, and their number."""
    dim = inputs.shape[1]
    num_far = negative + 1
    tiled_far, tiled_near = (num_far + TILE - 1) // TILE * TILE, (2 * window + TILE - 1) // TILE * TILE
    width = (dim + LANES - 1) // LANES * LANES
    near = np.zeros((tiled_near, width), np.float32)  # the input vectors of the neighbours
    far = np.zeros((tiled_far, width), np.float32)  # the output vectors of the word and of the noise words
    push = np.zeros((tiled_near, tiled_far), np.float32)  # learning rate x (label - prediction) of each pair
    rate_of = np.zeros(tiled_far, np.float32)  # 0 for padding, and for the word itself drawn as noise
    change = np.zeros((2, width), np.float32)
    near_word, far_word = np.zeros(tiled_near, np.int64), np.zeros(tiled_far, np.int64)
    next_noise = np.zeros(tiled_far, np.int64)
    for place in range(1, num_far):
        next_noise[place] = noise_word(state, noise)
    text = np.empty(CHUNK, np.int64)
    loss, num_losses, num_windows, at = 0.0, 0, 0, 0
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
            far_word[0], rate_of[0] = text[middle], rate
            for other in range(1, num_far):
                far_word[other] = next_noise[other]
                rate_of[other] = np.float32(0.0) if next_noise[other] == text[middle] else rate
            for other in range(num_far):
                row = far_word[other]
                for i in range(dim):
                    far[other, i] = outputs[row, i]
            for pair in range(count):
                row = near_word[pair]
                for i in range(dim):
                    near[pair, i] = inputs[row, i]
            for other in range(1, num_far):
                next_noise[other] = noise_word(state, noise)
                read_ahead(outputs, next_noise[other])
            if middle + 1 < length:
                read_ahead(outputs, text[middle + 1])
            if middle + 1 + window < length:
                read_ahead(inputs, text[middle + 1 + window])
            dot_products(near, far, count, tiled_far, push)
            if num_windows % LOSS_EVERY == 0:
                for pair in range(count):
                    for other in range(num_far):
                        if rate_of[other] > 0.0:
                            loss += softplus(-push[pair, other] if other == 0 else push[pair, other])
                            num_losses += 1
            for pair in range(count):
                for other in range(tiled_far):
                    push[pair, other] = -rate_of[other] * sigmoid(push[pair, other])
                push[pair, 0] += rate
            for pair in range(count, (count + TILE - 1) // TILE * TILE):
                push[pair, :] = 0.0
            add_products(outputs, far_word, num_far, push.T, near, count, change)
            add_products(inputs, near_word, count, push, far, num_far, change)
    return loss, num_losses
