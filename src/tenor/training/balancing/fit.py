"""Fit the cost of each worker to its measured steps: seconds = fixed + per_token × padded tokens.

Older steps lose weight slowly. Cumulative sums (Page 1954) find a change of speed: deviations from the fit on one side
that exceed the noise add up, and beyond a limit the fit of the worker restarts from these steps. Meanwhile, a step far
from the fit is kept out of it. A single one, such as a pause of the machine, is forgotten; three or four in a row are a
change. So the fit averages over many steps and still reacts quickly to a change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FADE = 0.95  # weight of a step relative to the next one
MIN_NOISE = 0.04  # of a step's time; smaller differences are not worth a change of shares
OUTLIER_SIGMAS = 2.5  # a step this far from the fit is kept out of it
MAX_SIGMAS = 3.0  # a step adds at most this much to the sum; OUTLIER_SIGMAS while the fit rests on few steps
SURE_STEPS = 8.0  # a fit with at least this weight rests on many steps
SLACK = 1.0  # sigmas that a step may deviate without adding to the sum
CHANGE_LIMIT = 5.5  # a larger sum of sigmas means a change: three steps very far off, or four far off
MIN_STEPS = 3  # that a fit needs before steps are compared with it
PRIOR_STEPS = 20.0  # weight of the assumption that all workers have the same ratio of fixed cost to token cost

# Rows of the sums: weights, z = 1/tokens, y = seconds/tokens, and their products. The noise of a step is proportional
# to its time, so the line is fitted to y = per_token + fixed × z, where all steps have the same weight.
W, Z, Y, ZZ, ZY = range(5)
SIDES = np.array([[1.0], [-1.0]])  # slower, faster


class CostFit:
    """The fitted costs of `size` workers."""

    def __init__(self, size: int) -> None:
        self.sums = np.zeros((5, size))
        self.trial = np.zeros(
            (2, 5, size)
        )  # per side: the same sums over the latest steps, all on that side of the fit
        self.off = np.zeros((2, size))  # per side: the sum of their deviations in sigmas
        self.last = np.zeros(size)  # log(measured / expected) of the last step
        self.noise = 0.1  # one sigma of log(measured / expected)

    def observe(self, tokens: Floats, seconds: Floats) -> None:
        """Add one step. Workers without tokens or seconds are left out."""
        seen = (tokens > 0) & (seconds > 0) & np.isfinite(seconds)
        z = np.divide(1.0, tokens, out=np.zeros_like(tokens), where=seen)
        y = np.where(seen, seconds * z, 0.0)
        terms = np.stack([np.ones_like(z), z, y, z * z, z * y])
        unsure = self.noise * np.sqrt(
            1.0 + 1.0 / np.maximum(self.sums[W], 1.0)
        )  # uncertainty of the step and of the fit
        logs = self._distance(z, y, seen)
        self._learn_noise(logs)
        sigmas = logs / unsure
        is_far = np.abs(sigmas) > OUTLIER_SIGMAS
        self._try(terms, sigmas, seen)
        self.sums = np.where(seen & ~is_far, FADE * self.sums + terms, self.sums)
        self._restart_changed()

    def _distance(self, z: Floats, y: Floats, seen: NDArray[np.bool_]) -> Floats:
        """log(measured / expected) per worker; 0 for a worker with too few steps."""
        fixed, per_token = self.estimate()
        expected = seen & (self.sums[W] > MIN_STEPS - 0.5)  # the weight of MIN_STEPS steps is slightly less
        logs: Floats = np.log(np.divide(y, per_token + fixed * z, out=np.ones_like(y), where=expected))
        return logs

    def _try(self, terms: Floats, sigmas: Floats, seen: NDArray[np.bool_]) -> None:
        most = np.where(self.sums[W] > SURE_STEPS, MAX_SIGMAS, OUTLIER_SIGMAS)
        added = np.maximum(0.0, self.off + SIDES * np.clip(sigmas, -most, most) - SLACK)
        self.off = np.where(seen, added, self.off)
        grown = np.where((self.off > 0)[:, None], self.trial + terms, 0.0)
        self.trial = np.where(seen, grown, self.trial)

    def _learn_noise(self, logs: Floats) -> None:
        """Estimate the noise from differences between neighbouring steps, which a slow drift does not affect, and from
        their median, which a change of a few workers does not affect."""
        jumps = np.abs(logs - self.last)[(logs != 0) & (self.last != 0)]
        self.last = logs
        if len(jumps):
            rate = 1.0 - 0.95 ** min(len(jumps), 8)  # more workers give more evidence per step
            sigma = min(1.48 / 1.41 * float(np.median(jumps)), 3.0 * self.noise)
            self.noise = max(MIN_NOISE, self.noise + rate * (sigma - self.noise))

    def _restart_changed(self) -> None:
        for side in range(2):
            changed = self.off[side] > CHANGE_LIMIT
            self.sums = np.where(changed, self.trial[side], self.sums)
            self.trial[:, :, changed] = 0.0
            self.off[:, changed] = 0.0

    def estimate(self) -> tuple[Floats, Floats]:
        """The costs (fixed, per_token) of every worker; a worker without steps gets the median of the others.

        A slow machine is slow at everything. So if the steps of a worker were too similar to tell its two costs apart,
        their ratio is taken from all workers.
        """
        weight = np.maximum(self.sums[W], 1e-12)
        z, y = self.sums[Z] / weight, self.sums[Y] / weight
        spread = np.maximum(self.sums[ZZ] / weight - z * z, 0.0)
        joint = self.sums[ZY] / weight - z * y
        belief = PRIOR_STEPS * z * z / weight + 1e-300
        free = _bounded((joint) / (spread + belief), z, y)
        known = self.known
        trust = np.where(known, spread / (spread + belief), 0.0)
        ratio = float(np.sum(trust * free / np.maximum(y - free * z, 1e-300)) / max(1e-12, float(trust.sum())))
        fixed = _bounded((joint + belief * ratio * y / (1.0 + ratio * z)) / (spread + belief), z, y)
        per_token = y - fixed * z
        if not known.all():
            middle = (np.median(fixed[known]), np.median(per_token[known])) if known.any() else (0.0, 1.0)
            fixed, per_token = np.where(known, fixed, middle[0]), np.where(known, per_token, middle[1])
        return fixed, per_token

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which workers have been measured at all."""
        known: NDArray[np.bool_] = self.sums[W] > 0
        return known

    @property
    def error(self) -> float:
        """One sigma of the relative error of a typical worker's fit."""
        return self.noise / float(np.sqrt(max(1.0, float(np.median(self.sums[W])))))

    def state(self) -> dict[str, Any]:
        return {
            "sums": self.sums.tolist(),
            "trial": self.trial.tolist(),
            "off": self.off.tolist(),
            "last": self.last.tolist(),
            "noise": self.noise,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.sums, self.trial = np.array(state["sums"]), np.array(state["trial"])
        self.off, self.last, self.noise = np.array(state["off"]), np.array(state["last"]), float(state["noise"])


def _bounded(fixed: Floats, z: Floats, y: Floats) -> Floats:
    """Limit the fixed cost to at least 0 and at most 90 % of the time; the rest must come from the tokens."""
    limit = np.divide(0.9 * y, z, out=np.zeros_like(y), where=z > 0)
    return np.clip(fixed, 0.0, limit)
