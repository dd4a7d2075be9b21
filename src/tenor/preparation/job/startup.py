"""Load the compiled code that a worker needs, before any work is measured; the first time, it has to be compiled."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tenor.engines.protocol import Engine
from tenor.engines.stage import Empty, JobStage
from tenor.progress import Progress

COMPILING = "Compiling the tokeniser for the first time on this machine; this takes about 20 s and happens once."


def announce(progress: Progress, others: Sequence[object] = ()) -> None:
    """Tell the user if the tokeniser has to be compiled, because nothing else is shown meanwhile.

    Args:
        progress: Gets the message.
        others: More compiled functions that will be called.
    """
    from tenor.compiled import is_kept
    from tenor.preparation.tokeniser.kernel import tokenise

    if not all(map(is_kept, [tokenise, *others])):
        progress.warn(COMPILING)


def compile_everywhere(engine: Engine) -> None:
    """Compile or load all kernels in this process and in every worker of the engine."""
    load_kernels.function(Empty())
    load_kernels.run(engine, [Empty()] * engine.workers)


@JobStage
def load_kernels(task: Empty) -> Empty:
    """Prepare a few rows, so that every kernel is compiled and loaded."""
    from tenor.preparation.job.prepare import prepare
    from tenor.preparation.settings import PrepareSettings

    with tempfile.TemporaryDirectory(prefix="tenor-warm-") as folder:
        raw = Path(folder) / "r.jsonl"
        raw.write_text(
            "".join(f'{{"reviewText": "good word{n}", "overall": {1 + 4 * (n % 2)}}}\n' for n in range(50)), "utf-8"
        )
        prepare([raw], Path(folder) / "out", PrepareSettings(workers=1, valid_share=0.0, test_share=0.0))
    return Empty()
