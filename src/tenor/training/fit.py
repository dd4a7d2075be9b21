"""Each worker's cost, fitted to what it was seen to do: seconds = fixed + per_token × padded tokens.

Old steps fade slowly. A change of speed is found by cumulative sums (Page 1954): steps that lie on one side of the fit
by more than the noise add up, and past a limit the worker's fit starts again from them. A step far off is kept out of
the fit meanwhile: a lone one (a pause of the machine) is forgotten, three or four in a row are a change. So the memory
is long against noise and short against change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FADE = 0.95  # weight of a step relative to the next one
LEAST_NOISE = 0.04  # of a step's time: quieter machines are not worth chasing
FAR = 2.5  # sigmas off the fit at which a step is kept out of it
MOST = 3.0  # sigmas beyond which it counts no more; FAR while the fit rests on few steps
SURE = 8.0  # steps' weight of a fit that rests on many
SLACK = 1.0  # sigmas a step may be off without adding to the sum
LIMIT = 5.5  # sum of sigmas that makes a change: three steps very far off, or four far off
ENOUGH = 3  # steps a fit needs before it expects anything
PRIOR = 20.0  # steps' worth of belief that a worker's fixed cost is to its token cost as everyone's

# Rows of the sums: of weights, of z = 1/tokens, of y = seconds/tokens, and of their products.
# Noise grows with the time itself, so the line is fitted to y = per_token + fixed × z, where all steps count alike.
W, Z, Y, ZZ, ZY = range(5)
SIDES = np.array([[1.0], [-1.0]])  # slower, faster


class Fit:
    def __init__(self, size: int) -> None:
        self.sums = np.zeros((5, size))
        self.trial = np.zeros((2, 5, size))  # the same sums since the steps began to lie on that side
        self.off = np.zeros((2, size))  # by how much they do, added up
        self.last = np.zeros(size)  # log(seen / expected) of the last step
        self.noise = 0.1  # one sigma of it

    def observe(self, tokens: Floats, seconds: Floats) -> None:
        """Take in one step. Workers without tokens or time showed nothing."""
        seen = (tokens > 0) & (seconds > 0) & np.isfinite(seconds)
        z = np.divide(1.0, tokens, out=np.zeros_like(tokens), where=seen)
        y = np.where(seen, seconds * z, 0.0)
        terms = np.stack([np.ones_like(z), z, y, z * z, z * y])
        unsure = self.noise * np.sqrt(1.0 + 1.0 / np.maximum(self.sums[W], 1.0))  # of the step and of the fit
        logs = self._distance(z, y, seen)
        self._learn_noise(logs)
        sigmas = logs / unsure
        is_far = np.abs(sigmas) > FAR
        self._try(terms, sigmas, seen)
        self.sums = np.where(seen & ~is_far, FADE * self.sums + terms, self.sums)
        self._restart_changed()

    def _distance(self, z: Floats, y: Floats, seen: NDArray[np.bool_]) -> Floats:
        """log(seen / expected); 0 where too little is known to expect anything."""
        fixed, per_token = self.estimate()
        expected = seen & (self.sums[W] > ENOUGH - 0.5)  # the first of them has faded a little
        logs: Floats = np.log(np.divide(y, per_token + fixed * z, out=np.ones_like(y), where=expected))
        return logs

    def _try(self, terms: Floats, sigmas: Floats, seen: NDArray[np.bool_]) -> None:
        most = np.where(self.sums[W] > SURE, MOST, FAR)
        added = np.maximum(0.0, self.off + SIDES * np.clip(sigmas, -most, most) - SLACK)
        self.off = np.where(seen, added, self.off)
        grown = np.where((self.off > 0)[:, None], self.trial + terms, 0.0)
        self.trial = np.where(seen, grown, self.trial)

    def _learn_noise(self, logs: Floats) -> None:
        """From one step to the next, which a drift does not move; from the middle, which a few changes do not move."""
        jumps = np.abs(logs - self.last)[(logs != 0) & (self.last != 0)]
        self.last = logs
        if len(jumps):
            rate = 1.0 - 0.95 ** min(len(jumps), 8)  # many workers teach it faster
            sigma = min(1.48 / 1.41 * float(np.median(jumps)), 3.0 * self.noise)
            self.noise = max(LEAST_NOISE, self.noise + rate * (sigma - self.noise))

    def _restart_changed(self) -> None:
        for side in range(2):
            changed = self.off[side] > LIMIT
            self.sums = np.where(changed, self.trial[side], self.sums)
            self.trial[:, :, changed] = 0.0
            self.off[:, changed] = 0.0

    def estimate(self) -> tuple[Floats, Floats]:
        """(fixed, per_token) of every worker; those not seen yet are taken for the middle of the others.

        A slow machine is slow at everything: where a worker's steps were too alike to tell its two costs apart, they
        stand to each other as everyone's do.
        """
        weight = np.maximum(self.sums[W], 1e-12)
        z, y = self.sums[Z] / weight, self.sums[Y] / weight
        spread = np.maximum(self.sums[ZZ] / weight - z * z, 0.0)
        joint = self.sums[ZY] / weight - z * y
        belief = PRIOR * z * z / weight + 1e-300
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
        """Which workers' fits rest on anything."""
        known: NDArray[np.bool_] = self.sums[W] > 0
        return known

    @property
    def error(self) -> float:
        """One sigma of a typical worker's relative error."""
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
    """A fixed cost neither negative nor nearly all of the time: some of it must come from the tokens."""
    limit = np.divide(0.9 * y, z, out=np.zeros_like(y), where=z > 0)
    return np.clip(fixed, 0.0, limit)
