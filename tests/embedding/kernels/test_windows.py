"""The compiled loop beside a plain one in NumPy that follows the definition of skip-gram and CBOW, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenor.embedding.kernels import windows as kernel
from tenor.embedding.kernels.means import train_block_of_means
from tenor.embedding.kernels.noise import keep_thresholds, noise_table
from tenor.embedding.kernels.small import sigmoid
from tenor.embedding.workers.worker import generator, rate_at

MASK = (1 << 64) - 1


class Draws:
    """xorshift64 in Python's own integers."""

    def __init__(self, state: int) -> None:
        self.state = state

    def draw(self) -> int:
        x = self.state
        x ^= (x << 13) & MASK
        x ^= x >> 7
        x ^= (x << 17) & MASK
        self.state = x
        return x

    def below(self, bound: int) -> int:
        return ((self.draw() >> 32) * bound) >> 32

    def noise(self, table: Any, count: int) -> list[int]:
        """Words by Walker's alias method: one number gives a place and, by its low bits, whether to stay there."""
        found = []
        for _ in range(count):
            x = self.draw()
            place = ((x >> 32) * len(table)) >> 32
            threshold, alias = int(table[place]) % (1 << 32), int(table[place]) >> 32
            found.append(place if x % (1 << 24) < threshold else alias)
        return found


def reference(
    words: list[int],
    inputs: Any,
    outputs: Any,
    keep: Any,
    noise: Any,
    seed: int,
    window: int,
    negative: int,
    rates: Any,
    step: Callable[..., tuple[float, float]],
) -> tuple[float, float]:
    """Cut the text into windows, draw noise words, and let `step` learn from each window."""
    draws, at, loss, losses, windows = Draws(seed), 0, 0.0, 0.0, 0
    is_ahead = step is skipgram  # skip-gram draws the noise words of a window while the window before is computed
    ahead = draws.noise(noise, negative) if is_ahead else []
    while at < len(words):
        rate, text = rates[0] + (rates[1] - rates[0]) * at / len(words), []
        while at < len(words) and len(text) < kernel.CHUNK:
            word = words[at]
            at += 1
            if word < 0:
                if text:
                    break
            elif draws.draw() >> 32 < keep[word]:
                text.append(word)
        for middle, word in enumerate(text):
            reach = draws.below(window) + 1
            near = text[max(0, middle - reach) : middle] + text[middle + 1 : middle + reach + 1]
            if not near:
                continue
            windows += 1
            if is_ahead:
                others, ahead = ahead, draws.noise(noise, negative)
            else:
                others = draws.noise(noise, negative)
            more, weight = step(inputs, outputs, word, near, others, rate)
            if windows % kernel.LOSS_EVERY == 0:
                loss, losses = loss + more, losses + weight
    return loss, losses


def learn(vectors: Any, far: Any, labels: Any, weights: Any) -> tuple[Any, Any, float, float]:
    """The downhill steps of inputs and outputs for the weighted logistic loss, the loss, and the sum of the weights."""
    guesses = 1.0 / (1.0 + np.exp(-vectors @ far.T))
    push = (labels - guesses) * weights
    loss = -float((np.log(np.where(labels == 1, guesses, 1 - guesses)) * weights).sum())
    return push @ far, push.T @ vectors, loss, float(weights.sum()) * len(vectors)


def skipgram(inputs: Any, outputs: Any, word: int, near: Any, noise: Any, rate: float) -> tuple[float, float]:
    others = [word, *noise]
    weights = np.array([1.0] + [float(other != word) for other in noise])  # the word itself is no noise
    labels = np.array([1.0] + [0.0] * len(noise))
    moves, moves_out, loss, weight = learn(inputs[near].copy(), outputs[others].copy(), labels, weights)
    np.add.at(inputs, near, rate * moves)
    np.add.at(outputs, others, rate * moves_out)
    return loss, weight


def by_means(rows: list[list[int]], is_cbow: bool) -> Callable[..., tuple[float, float]]:
    def step(inputs: Any, outputs: Any, word: int, near: Any, noise: Any, rate: float) -> tuple[float, float]:
        sources, wanted = (near, [word]) if is_cbow else ([word], near)
        places = [row for source in sources for row in rows[source]]
        others = [*wanted, *noise]
        weights = np.array([1.0] * len(wanted) + [len(wanted) * float(other not in wanted) for other in noise])
        labels = np.array([1.0] * len(wanted) + [0.0] * len(noise))
        mean = inputs[places].mean(axis=0, keepdims=True)
        moves, moves_out, loss, weight = learn(mean, outputs[others].copy(), labels, weights)
        np.add.at(inputs, places, rate * moves[0])
        np.add.at(outputs, others, rate * moves_out)
        return loss, weight

    return step


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "skipgram of rows", "cbow of rows"])
@pytest.mark.parametrize(("window", "negative", "dim"), [(1, 1, 5), (5, 7, 20), (3, 15, 33)])
def test_a_block_is_trained_by_the_definition(window: int, negative: int, dim: int, kind: str) -> None:
    rng = np.random.default_rng(window)
    words = rng.integers(0, 40, 2000).astype(np.int32)
    words[rng.random(2000) < 0.02] = kernel.BREAK
    counts = np.bincount(words[words >= 0], minlength=40) ** 2
    keep, noise = keep_thresholds(counts, 0.001), noise_table(counts)
    more = 30 if "rows" in kind else 0
    rows = [[word, *(40 + rng.integers(0, more, word % 5) if more else [])] for word in range(40)]
    inputs = ((rng.random((40 + more, dim)) - 0.5) / 2).astype(np.float32)
    outputs = ((rng.random((40, dim)) - 0.5) / 2).astype(np.float32)
    expected = inputs.astype(np.float64), outputs.astype(np.float64)
    rates, state = np.array([0.01, 0.002]), generator(3, 4)
    first = int(state[0])
    shared = (words, inputs, outputs, keep, noise, state, window, negative, rates)
    if kind == "skipgram":
        told, step = kernel.train_block(*shared), skipgram
    else:
        starts = np.concatenate([[0], np.cumsum([len(places) for places in rows])])
        flat, is_cbow = np.concatenate(rows).astype(np.int32), kind.startswith("cbow")
        told, step = train_block_of_means(*shared, is_cbow, starts, flat), by_means(rows, is_cbow)
    wanted = reference(words.tolist(), *expected, keep, noise, first, window, negative, rates, step)
    np.testing.assert_allclose(inputs, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs, expected[1], rtol=1e-4, atol=1e-5)
    assert told[1] == wanted[1] and told[0] == pytest.approx(wanted[0], rel=1e-5)


def test_the_sigmoid_is_exact_to_single_precision() -> None:
    logits = np.concatenate([np.linspace(-20, 20, 4001), [-1e30, 1e30]]).astype(np.float32)
    found = np.array([sigmoid(logit) for logit in logits])
    expected = 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -80, 80)))
    np.testing.assert_allclose(found, expected, atol=2e-7)


def test_nothing_happens_without_neighbours() -> None:
    inputs, outputs = np.ones((2, 4), np.float32), np.ones((2, 4), np.float32)
    words = np.array([0, kernel.BREAK, 1, kernel.BREAK, 0], np.int32)
    counts = np.array([2, 1])
    told = kernel.train_block(
        words, inputs, outputs, keep_thresholds(counts, 0), noise_table(counts),
        generator(0, 0), 5, 5, np.array([0.1, 0.1]),
    )  # fmt: skip
    assert told == (0.0, 0) and (inputs == 1).all() and (outputs == 1).all()


def test_the_rate_falls_on_a_line_to_almost_nothing() -> None:
    assert [rate_at(0.025, done) for done in (0.0, 0.5, 1.0)] == pytest.approx([0.025, 0.0125, 2.5e-6])


def test_a_block_has_its_own_random_numbers() -> None:
    assert len({int(generator(seed, number)[0]) for seed in range(5) for number in range(50)}) == 250
