"""`tenor.predict`: a whole file at once, on the engines that prepare uses; one JSON line a review, in their order."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tenor.corpus.pieces import Piece, plan, whole
from tenor.corpus.texts import read_piece_texts, text_source
from tenor.engines.choose import make_engine
from tenor.engines.settings import EngineSettings
from tenor.environment import usable_cores
from tenor.prediction.model import SentimentModel, load
from tenor.prediction.settings import PredictSettings
from tenor.progress import SILENT, Progress
from tenor.store.atomic import check_target, replacing


def predict(
    run: str | Path,
    source: str | Path,
    out: str | Path,
    settings: PredictSettings | None = None,
    progress: Progress = SILENT,
) -> int:
    """Predict every review of a file into `out`, JSON lines in the file's order; the number of reviews.

    >>> tenor.predict("run", "reviews.jsonl.gz", "labels.jsonl")  # doctest: +SKIP
    """
    settings = settings or PredictSettings()
    check_target(Path(out))
    load(run)  # what is wrong with the run is told before any worker starts
    found = text_source(str(source), settings.text_column)
    pieces = [whole(found)] if found.kind.format == "text" else plan([found])
    values = {**asdict(settings), "workers": settings.workers or usable_cores()}
    del values["text_column"]
    engine = make_engine(EngineSettings(**values))
    try:
        with _parts(Path(out)) as folder:
            parts = [folder / f"{number:06d}.jsonl" for number in range(len(pieces))]
            tasks = [
                {"run": str(Path(run).resolve()), "piece": piece.as_dict(), "part": str(part)}
                for piece, part in zip(pieces, parts, strict=True)
            ]
            progress.start("predict", len(tasks), "part")
            results = engine.run("tenor.prediction.many:predict_piece", tasks, lambda result: progress.advance(1))
            _join(parts, Path(out))
    finally:
        progress.finish()
        engine.close()
    return sum(int(result["rows"]) for result in results)


def predict_piece(task: dict[str, Any]) -> dict[str, Any]:
    """The map step: one piece of the file into one part."""
    model, rows = _load_once(task["run"]), 0
    with replacing(Path(task["part"])) as temporary, temporary.open("w", encoding="utf-8") as file:
        for texts in read_piece_texts(Piece.from_dict(task["piece"])):
            for prediction in model.predict(texts):
                file.write(json.dumps(prediction.as_dict()) + "\n")
                rows += 1
    return {"rows": rows}


@functools.lru_cache(maxsize=1)
def _load_once(run: str) -> SentimentModel:
    return load(run)


@contextmanager
def _parts(out: Path) -> Iterator[Path]:
    """A folder beside the result, where workers on other hosts see it too; it goes away whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.resolve().parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _join(parts: list[Path], out: Path) -> None:
    with replacing(out) as temporary, temporary.open("wb") as whole_file:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole_file)
