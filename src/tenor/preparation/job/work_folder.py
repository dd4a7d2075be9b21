"""The names of all folders and files that a job makes, in its work folder and in its result.

.OUT.preparing/            the work folder, beside the result OUT
  key                      names the job that owns the work folder
  0123456789abcdef/        outputs of the job, named by the start of its key
    pieces/000000/         one output per task: rejected rows and counts of a piece
    slices/000000/         rows of a piece, with word ids of their own
    text-parts/000000/     the rows that are kept of a text part
    word-counts/000000/    the words of a slice, counted
    word-parts/000000/     the most frequent words of a word part
    id-tables/000000/      vocabulary ids of the words of a slice
    vocabulary/000000/     vocab.json
    shards/000000/         one shard
    final/                 the result, renamed to OUT at the end
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEY = "key"
FINAL = "final"
OUTPUTS = ("pieces", "slices", "text-parts", "word-counts", "word-parts", "id-tables", "vocabulary", "shards")

# Files of an output; see `outputs`.
RESULT = "result.json"
ARRAYS = "arrays"

# Files of the result beside its manifest and its shards. An output of `pieces` has a list of rejected rows too.
JOB = "job.json"
REJECTS = "rejects.jsonl"
VOCABULARY = "vocab.json"


def work_path(out: Path) -> Path:
    """The work folder of the job that makes `out`."""
    return out.with_name(f".{out.name}.preparing")


def shard_file(split: str, number: int) -> str:
    """A shard's name in the result."""
    return f"{split}/{number:05d}.h5"


@dataclass(frozen=True)
class WorkFolder:
    """Where the outputs of a job's tasks lie. Every worker sees the folder under the same path."""

    path: str

    def piece(self, number: int) -> Path:
        return self._output("pieces", number)

    def slice(self, number: int) -> Path:
        return self._output("slices", number)

    def text_part(self, number: int) -> Path:
        return self._output("text-parts", number)

    def word_counts(self, slice_number: int) -> Path:
        return self._output("word-counts", slice_number)

    def word_part(self, number: int) -> Path:
        return self._output("word-parts", number)

    def id_table(self, slice_number: int) -> Path:
        return self._output("id-tables", slice_number)

    @property
    def vocabulary(self) -> Path:
        return self._output("vocabulary", 0)

    def shard(self, number: int) -> Path:
        return self._output("shards", number)

    @property
    def final(self) -> Path:
        return Path(self.path) / FINAL

    def _output(self, name: str, number: int) -> Path:
        return Path(self.path) / name / f"{number:06d}"
