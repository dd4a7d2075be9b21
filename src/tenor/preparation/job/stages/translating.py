"""The translate stage: for each slice, a table from its own word ids to ids of the vocabulary."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tenor.engines.stage import Empty, JobStage
from tenor.preparation.job.outputs import finished, load_arrays, making, save_arrays, save_result
from tenor.preparation.job.stages.mapping import SliceRows
from tenor.preparation.job.work_folder import VOCABULARY, WorkFolder
from tenor.preparation.tokeniser.spelling import Speller
from tenor.preparation.tokeniser.vocabulary import Vocabulary


@dataclass(frozen=True)
class TranslateTask:
    work: WorkFolder
    slice: int  # number of the slice
    vocab_sha256: str
    units: str  # what the entries of the vocabulary are: words or characters


@dataclass(frozen=True)
class IdTable:
    table: npt.NDArray[np.int32]  # vocabulary id of each word of the slice, or of each of its characters
    starts: npt.NDArray[np.int64]  # where the characters of each word start; empty if the entries are words


@JobStage
def translate_slice(task: TranslateTask) -> Empty:
    """Look up the words of one slice in the vocabulary."""
    path = task.work.id_table(task.slice)
    if (known := finished(path, Empty)) is not None:
        return known
    vocabulary = _vocabulary(task.work, task.vocab_sha256)
    rows = load_arrays(task.work.slice(task.slice), SliceRows)
    if task.units == "characters":
        spelling = Speller(vocabulary)(rows.words, rows.word_starts)
        table = IdTable(spelling.ids, spelling.starts)
    else:
        table = IdTable(vocabulary.look_up(rows.words, rows.word_starts), np.empty(0, np.int64))
    with making(path) as folder:
        save_arrays(folder, table)
        return save_result(folder, Empty())


@functools.lru_cache(maxsize=1)
def _vocabulary(work: WorkFolder, sha256: str) -> Vocabulary:
    """The job's vocabulary, read once per process; the hash keeps apart the vocabularies of different jobs."""
    vocabulary = Vocabulary.load(work.vocabulary / VOCABULARY)
    assert vocabulary.sha256 == sha256
    return vocabulary
