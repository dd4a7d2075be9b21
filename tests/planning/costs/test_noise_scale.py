"""The noise scale against gradients whose noise is known, and what a batch needs against the paper's formula."""

import numpy as np
import pytest

from tenor.planning.costs.noise_scale import estimate_noise_scale, samples_factor, steps_factor


def measured(
    true: np.ndarray, deviation: float, shares: tuple[int, ...], steps: int, seed: int = 0
) -> list[np.ndarray]:
    """Squared norms and inverse batches of steps whose samples have gradients `true` plus noise."""
    rng, batch = np.random.default_rng(seed), sum(shares)
    rows = []
    for _ in range(steps):
        samples = true + rng.normal(0.0, deviation, (batch, len(true)))
        parts = np.split(samples, np.cumsum(shares)[:-1])
        small = np.mean([float((part.mean(axis=0) ** 2).sum()) for part in parts])
        large = float((samples.mean(axis=0) ** 2).sum())
        rows.append((small, large, np.mean([1.0 / n for n in shares]), 1.0 / batch))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("shares", [(8, 8), (4, 12), (2, 2, 2, 10)])
def test_the_known_noise_is_found_with_any_shares(shares: tuple[int, ...]) -> None:
    true = np.random.default_rng(7).normal(0.0, 0.2, 200)
    known = 0.5**2 * len(true) / float((true**2).sum())  # trace of the covariance over the squared gradient
    found = estimate_noise_scale(*measured(true, 0.5, shares, 1500))
    assert found is not None and found.value == pytest.approx(known, rel=0.1)
    assert found.low < known < found.high and found.steps == 1500


def test_more_steps_give_a_narrower_interval() -> None:
    true = np.full(50, 0.1)
    few, many = (estimate_noise_scale(*measured(true, 0.3, (4, 4), steps, 3)) for steps in (300, 4000))
    assert few is not None and many is not None and many.high / many.low < few.high / few.low


def test_pure_noise_and_few_steps_have_no_estimate() -> None:
    assert estimate_noise_scale(*measured(np.zeros(4), 1.0, (2, 2), 5)) is None
    zeros, small, large = np.zeros(100), np.full(100, 0.5), np.full(100, 0.25)
    assert estimate_noise_scale(zeros + 2.0, zeros + 1.0, small, large) is None  # |G|² = 1 − 4/4 = 0
    assert estimate_noise_scale(zeros + 1.0, zeros + 1.0, small, small) is None  # one worker: nothing to compare


def test_what_a_batch_needs() -> None:
    noise, least_steps, least_samples = 500.0, 1000.0, 1000.0 * 500.0
    for batch in (1, 64, 500, 1e6):
        steps = least_steps * steps_factor(batch, noise)
        samples = least_samples * samples_factor(batch, noise)
        assert samples == pytest.approx(steps * batch)  # S × B = E, and (S/S_min − 1)(E/E_min − 1) = 1
        assert (steps / least_steps - 1) * (samples / least_samples - 1) == pytest.approx(1.0)
