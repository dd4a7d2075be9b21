"""How predictions are written: JSON lines, CSV or Parquet, beside the columns of the input.

Workers write one file per piece. Pieces of JSON lines are final and are only joined. For CSV and Parquet the pieces are
streams of Arrow tables, see `tenor.prediction.tables`.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self, TextIO

import numpy as np

from tenor.corpus.files.source import Source
from tenor.corpus.formats.registry import format_named
from tenor.corpus.texts import TextRows
from tenor.errors import CorpusError, UsageError
from tenor.evaluation.decision import decide
from tenor.prediction.settings import PredictSettings
from tenor.prediction.tables import PROBABILITY, Row, as_table, join_csv, join_parquet
from tenor.runtime.model import SentimentModel
from tenor.store.atomic import replacing

SUFFIXES = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
TABLE_ROWS = 10_000  # rows that a writer holds
OWN = ("file", "line", "label", "probability", "known_words", "abstained", "probabilities", "explanation")


@dataclass(frozen=True)
class OutputColumns:
    """What a row of the output has beside label, probability and the number of known words."""

    keep: bool = False  # all columns of the input
    id_column: str | None = None  # one column of the input
    lines: bool = False  # the file and the line of the row
    probabilities: bool = False  # of all classes
    explain: bool = False
    abstain_below: float = 0.0  # a label that is less probable is left out

    @classmethod
    def of(cls, settings: PredictSettings) -> OutputColumns:
        return cls(
            settings.keep_columns,
            settings.id_column,
            settings.line_numbers,
            settings.probabilities,
            settings.explain,
            settings.abstain_below,
        )

    @property
    def with_records(self) -> bool:
        """Whether columns of the input are needed."""
        return self.keep or self.id_column is not None

    def kept(self, record: Row) -> Row:
        """The columns of the input that the output has. One that is called like one of our own is renamed to
        original_NAME, so that none is lost.
        """
        if self.id_column is not None and self.id_column not in record:
            raise CorpusError(
                f"a row has no column {self.id_column!r}",
                remedy=f"--id-column can be {', '.join(list(record)[:20]) or '(none)'}",
            )
        names = record if self.keep else [name for name in record if name == self.id_column]
        return {storable(self._free_name(name, record)): storable(record[name]) for name in names}

    def _free_name(self, name: str, record: Row) -> str:
        is_own = name in OWN or (self.probabilities and name.startswith(PROBABILITY))
        while is_own:
            name = "original_" + name
            is_own = name in record
        return name


def storable(value: Any) -> Any:
    """A value of the input as every output can hold it.

    NaN and infinite numbers become missing values, bytes become text, and half a surrogate pair becomes its escape.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {storable(str(key)): storable(inner) for key, inner in value.items()}
    return [storable(inner) for inner in value] if isinstance(value, list | tuple) else value


def output_format(out: Path, asked: str) -> str:
    """The format of the output: the one asked for, or by the name of the file; JSON lines for other names."""
    return SUFFIXES.get(out.suffix.lower(), "json") if asked == "auto" else asked


def make_rows(model: SentimentModel, texts: Any, columns: OutputColumns) -> Iterator[Row]:
    """A row of the output for each text, without the columns of the input."""
    scores = model.score(texts)
    best = decide(scores.probabilities, model.threshold)
    chosen = scores.probabilities[np.arange(len(best)), best]
    rows = zip(best.tolist(), chosen.tolist(), scores.known_words.tolist(), strict=True)
    plain = texts.to_pylist() if columns.explain else []
    chances = scores.probabilities.tolist() if columns.probabilities else []
    is_unsure = (chosen < columns.abstain_below).tolist()
    for number, (label, chance, known) in enumerate(rows):
        row: Row = {"label": model.classes[label], "probability": chance, "known_words": known}
        if columns.abstain_below:
            row |= {"label": None if is_unsure[number] else row["label"], "abstained": is_unsure[number]}
        if columns.probabilities:
            row["probabilities"] = dict(zip(model.classes, chances[number], strict=True))
        if columns.explain:
            pieces = model.explain(plain[number], model.classes[label])
            row["explanation"] = [[*piece[:3], round(piece.contribution, 6)] for piece in pieces]
        yield row


def complete_rows(
    model: SentimentModel, rows: TextRows, columns: OutputColumns, file: str, lines_before: int = 0
) -> Iterator[Row]:
    """A row of the output for each row of a file.

    Args:
        model: The model.
        rows: Some rows of a piece of the file.
        columns: What the output has.
        file: The name of the file.
        lines_before: Lines of the file before the piece.
    """
    for place, row in enumerate(make_rows(model, rows.texts, columns)):
        start = {"file": file, "line": lines_before + rows.lines[place]} if columns.lines else {}
        kept = columns.kept(rows.records[place]) if rows.records is not None else {}
        yield {**start, **row, **kept}


def json_line(row: Row) -> str:
    """A row as one line of JSON, without the end of the line."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=str)


class PieceWriter:
    """Writes the rows of one piece."""

    def __init__(self, file: Path, kind: str) -> None:
        self._keep_types = kind == "parquet"
        self._text: TextIO | None = file.open("w", encoding="utf-8") if kind == "json" else None
        self._tables: BinaryIO | None = None if kind == "json" else file.open("wb")
        self._rows: list[Row] = []

    def write(self, row: Row) -> None:
        if self._text is not None:
            self._text.write(json_line(row) + "\n")
        else:
            self._rows.append(row)
            if len(self._rows) == TABLE_ROWS:
                self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._text is not None:
            self._text.close()
        if self._tables is not None:
            if kind is None:
                self._flush()
            self._tables.close()

    def _flush(self) -> None:
        """Write the rows that are in memory as one table."""
        if not self._rows:
            return
        import pyarrow as pa

        table = as_table(self._rows, self._keep_types)
        with pa.ipc.new_stream(self._tables, table.schema) as stream:
            stream.write_table(table)
        self._rows = []


def join(files: Sequence[Path], out: Path, kind: str) -> None:
    """Write the rows of all pieces, one piece after another, to `out`."""
    with replacing(out) as temporary:
        if kind == "json":
            with temporary.open("wb") as joined:
                for path in files:
                    with path.open("rb") as file:
                        shutil.copyfileobj(file, joined)
        elif kind == "csv":
            join_csv(files, temporary)
        else:
            join_parquet(files, temporary)


def check_columns(columns: OutputColumns, source: Source) -> None:
    """UsageError if columns are wanted of a file that has none."""
    if columns.with_records and not format_named(source.kind.format).has_columns:
        option = "--keep-columns" if columns.keep else "--id-column"
        what = f"{option}, but the file has no columns: it is read as {source.kind.format}"
        raise UsageError(what, where=source.shown, remedy=f"omit {option}, or give the right --format")
