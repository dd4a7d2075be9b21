"""Prepare or predict with workers that are warm: `python -m tenor.bench.scenarios.scaling.child JOB`.

The process prints `seconds` of the work and `startup_s`, the time until all workers have loaded and compiled what they
need. Every worker computes with one thread.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tenor.engines.local import LocalEngine


def main() -> None:
    job = json.loads(sys.argv[1])
    began = time.perf_counter()
    engine = LocalEngine(job["workers"])
    try:
        work = _make_prepare(engine, job) if job["stage"] == "prepare" else _make_predict(engine, job)
        ready = time.perf_counter()
        work()
        done = time.perf_counter()
    finally:
        engine.close()
    print(json.dumps({"seconds": done - ready, "startup_s": ready - began}))


def _make_prepare(engine: LocalEngine, job: dict[str, Any]) -> Any:
    from tenor.preparation.job.prepare import prepare_on
    from tenor.preparation.job.startup import compile_everywhere
    from tenor.preparation.settings import PrepareSettings

    out = Path(job["folder"]) / "prepared"
    shutil.rmtree(out, ignore_errors=True)
    compile_everywhere(engine)
    return lambda: prepare_on(engine, [job["source"]], out, PrepareSettings(workers=job["workers"]))


def _make_predict(engine: LocalEngine, job: dict[str, Any]) -> Any:
    from tenor.corpus.pieces import whole
    from tenor.corpus.texts import text_source
    from tenor.prediction.output import OutputColumns
    from tenor.prediction.predict import PredictJob, PredictTask, predict_on, predict_piece
    from tenor.prediction.settings import PredictSettings
    from tenor.prediction.worker_model import ModelRef

    folder, ref = Path(job["folder"]), ModelRef.of(job["run"])
    few = folder / "few.jsonl"
    with Path(job["source"]).open("rb") as file:
        few.write_bytes(b"".join(file.readline() for _ in range(50)))
    piece, plain = whole(text_source(str(few))), OutputColumns()
    outs = [str(folder / f"few-{worker}.jsonl") for worker in range(engine.workers)]
    tasks = [PredictTask(ref, piece, out, "json", plain, 0, False, 1, engine.workers) for out in outs]
    predict_piece.run(engine, tasks)
    sources = [text_source(job["source"])]
    return lambda: predict_on(engine, PredictJob(ref, sources, folder / "labels.jsonl", PredictSettings(threads=1)))


if __name__ == "__main__":
    main()
