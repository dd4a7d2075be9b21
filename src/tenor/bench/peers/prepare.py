"""The contenders of `tenor bench prepare`, each run as `python -m tenor.bench.peers.prepare NAME FILE OUT`.

Each does the work of `tenor prepare` in the usual way of its tool: clean the text (HTML tags and entities, NFC, lower
case), split it into words, count them, keep the 30,000 most frequent words, turn texts into ids and write them. Only
Tenor also removes duplicates, splits the data and accounts for every row.
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

Times = tuple[float, float, float]  # seconds of start-up, seconds of work, processor seconds before the work


def _processor_seconds() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _tenor(source: Path, out: Path, workers: int) -> Times:
    began = time.perf_counter()
    from tenor.engines.local import LocalEngine
    from tenor.preparation.job.prepare import prepare_on
    from tenor.preparation.job.startup import compile_everywhere
    from tenor.preparation.settings import PrepareSettings

    engine = LocalEngine(workers)
    try:
        compile_everywhere(engine)
        ready, spent = time.perf_counter(), _processor_seconds()
        prepare_on(engine, [source], out, PrepareSettings(workers=workers, vocab_size=_TOP))
        return ready - began, time.perf_counter() - ready, spent
    finally:
        engine.close()


def words_of(text: str) -> list[str]:
    """Return the cleaned words of a text."""
    return _WORD.findall(unicodedata.normalize("NFC", html.unescape(_TAGS.sub(" ", text))).lower())


def _number(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return {word: i + 2 for i, (word, _) in enumerate(counts)}


def _pandas(source: Path, out: Path) -> Times:
    began = time.perf_counter()
    import numpy as np
    import pandas as pd

    ready, spent = time.perf_counter(), _processor_seconds()
    frame = pd.read_json(source, lines=True)
    words = frame["reviewText"].map(words_of)
    numbers = _number(Counter(chain.from_iterable(words)).most_common(_TOP - 2))
    ids = words.map(lambda row: np.array([numbers.get(word, 1) for word in row], np.int32))
    tokens, lengths = np.concatenate(ids.tolist()), ids.map(len).to_numpy()
    np.savez(out.with_suffix(".npz"), tokens=tokens, lengths=lengths, labels=frame["overall"].to_numpy())
    return ready - began, time.perf_counter() - ready, spent


def _dask(source: Path, out: Path) -> Times:
    began = time.perf_counter()
    import dask
    import dask.dataframe as dd
    import pandas as pd

    table = source.with_suffix(".csv")
    if not table.exists():  # the course projects start from CSV
        pd.read_json(source, lines=True).to_csv(table, index=False)
    with dask.config.set(scheduler="processes", num_workers=os.cpu_count()):
        ready, spent = time.perf_counter(), _processor_seconds()
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
    """Return the words of each row of a lazy table, with another column.

    Only texts with characters outside ASCII are normalised, because normalising all would take a third of the time.
    """
    import polars as pl

    entities = {f"&{name}": character for name, character in html5.items() if name.endswith(";")}
    text = pl.col(column).str.replace_all(_TAG, " ").str.replace_many({**entities, "&#39;": "'", "&#34;": '"'})
    table, text = table.select(text.alias("word"), other), pl.col("word")
    is_ascii = text.str.len_bytes() == text.str.len_chars()
    pattern = r"[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)*|!+|\?+"
    tables = [
        table.filter(condition).select(normal.str.to_lowercase().str.extract_all(pattern), other)
        for condition, normal in ((is_ascii, text), (~is_ascii, text.str.normalize("NFC")))
    ]
    return pl.concat(tables)


def _polars(source: Path, out: Path) -> Times:
    began = time.perf_counter()
    import polars as pl

    ready, spent = time.perf_counter(), _processor_seconds()
    # The fastest way we found: lazy and streaming where it helps, and words in one flat column with row lengths.
    lists = polars_words(pl.scan_ndjson(source), "reviewText", "overall").collect(engine="streaming")
    words = lists.select("word").explode("word").lazy()
    counts = words.group_by("word").len().sort(["len", "word"], descending=[True, False]).head(_TOP - 2)
    numbers = counts.select("word").collect(engine="streaming").with_row_index("id", offset=2).lazy()
    ids = words.join(numbers, on="word", how="left", maintain_order="left").select(pl.col("id").fill_null(1))
    ids.collect().write_parquet(out.with_suffix(".parquet"), compression="uncompressed")
    rows = lists.select(pl.col("word").list.len(), "overall")
    rows.write_parquet(out.with_suffix(".rows"), compression="uncompressed")
    return ready - began, time.perf_counter() - ready, spent


def _wc(source: Path, out: Path) -> Times:
    began, spent = time.perf_counter(), _processor_seconds()
    subprocess.run(["wc", "-w", str(source)], env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.DEVNULL, check=True)
    return 0.0, time.perf_counter() - began, spent


_PEERS: dict[str, Callable[[Path, Path], Times]] = {"pandas": _pandas, "dask": _dask, "polars": _polars, "wc": _wc}


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
    # Worker processes count when they have ended, including the time of their start.
    print(
        json.dumps({"seconds": seconds, "startup_s": startup, "cpu_s": _processor_seconds() - spent, "stages": stages})
    )


if __name__ == "__main__":
    main()
