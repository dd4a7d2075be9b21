"""The contenders of `tenor bench prepare`, each run as `python -m tenor.bench.prepare_peers NAME FILE OUT`.

They do what prepare does, as people do it with each tool: clean (HTML tags and entities, NFC, lower case), cut into
words, count, keep the 30,000 most frequent words, turn texts into ids, write them. None of the others dedupes, splits
or accounts for rows.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from html.entities import html5
from itertools import chain
from pathlib import Path
from typing import Any

_TOP = 30_000
_TAG = r"</?[A-Za-z][^<>]*>"
_TAGS = re.compile(_TAG)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|!+|\?+")

Timed = tuple[float, float, float]  # seconds to start, seconds of work, processor seconds before the work


def _spent() -> float:
    """Processor seconds of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _tenor(source: Path, out: Path, workers: int) -> Timed:
    began = time.perf_counter()
    from tenor.engines.local import LocalEngine
    from tenor.preparation import warm
    from tenor.preparation.job import prepare_on
    from tenor.preparation.settings import PrepareSettings

    engine = LocalEngine(workers)
    try:
        warm.run({})
        engine.run(warm.STAGE, [{}] * workers, lambda result: None)
        ready, spent = time.perf_counter(), _spent()
        prepare_on(engine, [source], out, PrepareSettings(workers=workers, vocab_size=_TOP))
        return ready - began, time.perf_counter() - ready, spent
    finally:
        engine.close()


def words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", html.unescape(_TAGS.sub(" ", text))).lower())


def _number(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return {word: i + 2 for i, (word, _) in enumerate(counts)}


def _pandas(source: Path, out: Path) -> Timed:
    began = time.perf_counter()
    import numpy as np
    import pandas as pd

    ready, spent = time.perf_counter(), _spent()
    frame = pd.read_json(source, lines=True)
    words = frame["reviewText"].map(words_of)
    numbers = _number(Counter(chain.from_iterable(words)).most_common(_TOP - 2))
    ids = words.map(lambda row: np.array([numbers.get(word, 1) for word in row], np.int32))
    tokens, lengths = np.concatenate(ids.tolist()), ids.map(len).to_numpy()
    np.savez(out.with_suffix(".npz"), tokens=tokens, lengths=lengths, labels=frame["overall"].to_numpy())
    return ready - began, time.perf_counter() - ready, spent


def _dask(source: Path, out: Path) -> Timed:
    began = time.perf_counter()
    import dask
    import dask.dataframe as dd
    import pandas as pd

    table = source.with_suffix(".csv")
    if not table.exists():  # the way of the course projects starts from CSV
        pd.read_json(source, lines=True).to_csv(table, index=False)
    with dask.config.set(scheduler="processes", num_workers=os.cpu_count()):
        ready, spent = time.perf_counter(), _spent()
        frame = dd.read_csv(str(table), blocksize="8MB", dtype={"reviewText": "object"})
        words = frame["reviewText"].map(words_of, meta=("words", "object"))
        counts = words.map_partitions(_count, meta=("counts", "object")).compute()
        numbers = _number(sum(counts, Counter()).most_common(_TOP - 2))
        ids = words.map(lambda row: [numbers.get(word, 1) for word in row], meta=("ids", "object"))
        ids.map(lambda row: " ".join(map(str, row)), meta=("ids", "object")).to_frame().to_csv(str(out / "*.csv"))
    return ready - began, time.perf_counter() - ready, spent


def _count(words: Any) -> Any:
    import pandas as pd

    return pd.Series([Counter(chain.from_iterable(words))])


def polars_words(table: Any, column: str, other: str) -> Any:
    """A lazy table's words, row by row, beside another column. Only text that is not plain ASCII is normalised: that
    alone would take a third of the time."""
    import polars as pl

    entities = {f"&{name}": character for name, character in html5.items() if name.endswith(";")}
    text = pl.col(column).str.replace_all(_TAG, " ").str.replace_many({**entities, "&#39;": "'", "&#34;": '"'})
    table, text = table.select(text.alias("word"), other), pl.col("word")
    is_plain = text.str.len_bytes() == text.str.len_chars()
    pattern = r"[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)*|!+|\?+"
    parts = [
        table.filter(of_kind).select(plain.str.to_lowercase().str.extract_all(pattern), other)
        for of_kind, plain in ((is_plain, text), (~is_plain, text.str.normalize("NFC")))
    ]
    return pl.concat(parts)


def _polars(source: Path, out: Path) -> Timed:
    began = time.perf_counter()
    import polars as pl

    ready, spent = time.perf_counter(), _spent()
    # Lazy and streaming where it pays, rows flat beside their lengths: of the ways tried, the fastest.
    lists = polars_words(pl.scan_ndjson(source), "reviewText", "overall").collect(engine="streaming")
    words = lists.select("word").explode("word").lazy()
    counts = words.group_by("word").len().sort(["len", "word"], descending=[True, False]).head(_TOP - 2)
    numbers = counts.select("word").collect(engine="streaming").with_row_index("id", offset=2).lazy()
    ids = words.join(numbers, on="word", how="left", maintain_order="left").select(pl.col("id").fill_null(1))
    ids.collect().write_parquet(out.with_suffix(".parquet"), compression="uncompressed")
    rows = lists.select(pl.col("word").list.len(), "overall")
    rows.write_parquet(out.with_suffix(".rows"), compression="uncompressed")
    return ready - began, time.perf_counter() - ready, spent


def _wc(source: Path, out: Path) -> Timed:
    began, spent = time.perf_counter(), _spent()
    subprocess.run(["wc", "-w", str(source)], env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.DEVNULL, check=True)
    return 0.0, time.perf_counter() - began, spent


_PEERS: dict[str, Callable[[Path, Path], Timed]] = {"pandas": _pandas, "dask": _dask, "polars": _polars, "wc": _wc}


def main() -> None:
    name, source, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    stages: dict[str, float] = {}
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    if name.startswith("tenor-"):
        startup, seconds, spent = _tenor(source, out, int(name.removeprefix("tenor-")))
        stages = json.loads((out / "job.json").read_text("utf-8"))["stages"]
    else:
        startup, seconds, spent = _PEERS[name](source, out)
    shutil.rmtree(out, ignore_errors=True)
    # Worker processes are counted when they have ended, with what their own start took.
    print(json.dumps({"seconds": seconds, "startup_s": startup, "cpu_s": _spent() - spent, "stages": stages}))


if __name__ == "__main__":
    main()
