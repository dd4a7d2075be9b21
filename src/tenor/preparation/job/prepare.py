"""`tenor.prepare`: raw review files to a folder of token shards."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from tenor import __version__
from tenor.corpus.columns import Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.frames import ACCEPTED, Frame, frame_sources, is_frame
from tenor.corpus.standard_input import all_sources
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine
from tenor.errors import CorpusError, StoreError, Unreachable, UsageError, naming
from tenor.preparation.job.accounting import check_rejects, read_first_reject
from tenor.preparation.job.folders import JobFolders
from tenor.preparation.job.pipeline import JobInput, PrepareJob
from tenor.preparation.job.result import JobReport, PrepareResult, make_result
from tenor.preparation.job.startup import announce
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.stopwords import read_stopwords
from tenor.preparation.tokeniser.tokenise import TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import borrow, has_negated_words, lender_of
from tenor.progress import SILENT, Progress, Shown, shown
from tenor.settings import changed, chosen

if TYPE_CHECKING:
    from tenor.options import PrepareOptions

_DEFAULTS = PrepareSettings()
Inputs: TypeAlias = Sequence[str | Path] | str | Path | Frame


def prepare(
    inputs: Inputs,
    out: str | Path,
    settings: PrepareSettings | None = None,
    progress: Shown = None,
    **options: Unpack[PrepareOptions],
) -> PrepareResult:
    """Turn raw reviews into a folder of token shards, and account for every row.

    If the same job was stopped before, its finished tasks are not run again. If its result exists already, the function
    returns at once. The result is the same to the byte on every engine and with any number of workers.

    Args:
        inputs: Files, folders, globs or addresses of reviews; "-" is standard input. Or one table in memory: a data
            frame of pandas (2.2 or later) or Polars, an Arrow table, or a dict of columns. A table gives the same
            result as a Parquet file with its rows; rejected rows are counted from 1.
        out: The folder to make. It appears when the job is done.
        settings: How to read, clean and split the reviews, and where the job runs.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The numbers of rows, the vocabulary size, the splits and the time.

    Raises:
        CorpusError: An input cannot be read, more rows than `max_rejects` allows are rejected, or fewer than two
            classes are left.
        UsageError: The settings do not fit the inputs, or `out` exists and is not the result of this job.
        WorkerError: Workers died too often, or the cluster does not answer.

    >>> result = tenor.prepare("reviews.jsonl.gz", "data", workers=4)  # doctest: +SKIP
    >>> result.rows_kept, result.duplicates  # doctest: +SKIP
    (9124, 310)
    """
    settings = chosen(PrepareSettings, settings, options)
    engine = make_engine(settings)
    try:
        return prepare_on(engine, inputs, out, settings, shown(progress))
    finally:
        engine.close()


def prepare_on(
    engine: Engine,
    inputs: Inputs,
    out: str | Path,
    settings: PrepareSettings = _DEFAULTS,
    progress: Progress = SILENT,
) -> PrepareResult:
    """Do the same as `prepare` on an engine that is running already, and leave it running."""
    began = time.monotonic()
    with _sources(inputs, settings.wanted, Path(out).resolve()) as sources:
        tokeniser = TokeniserSettings(
            settings.clean, settings.marks, read_stopwords(settings.stopwords), negation=settings.negation
        )
        vocabulary = None
        if settings.vocab:
            vocab, tokeniser = settings.vocab, _as_lender(settings, tokeniser)
            settings = dataclasses.replace(
                settings, clean=tokeniser.clean, marks=tokeniser.marks, negation=tokeniser.negation
            )
            vocabulary = borrow(vocab, tokeniser.as_dict())
        given = JobInput(sources, settings, tokeniser, vocabulary)
        return _prepare(engine, given, Path(out), progress, began)


def _sources(inputs: Inputs, wanted: Wanted, out: Path) -> contextlib.AbstractContextManager[list[Source]]:
    """The files, or the data frame, as sources that exist until the job is done."""
    if is_frame(inputs):
        return frame_sources(inputs, wanted, out)
    is_one = isinstance(inputs, str | Path) or not isinstance(inputs, Iterable)
    given: list[object] = [inputs] if is_one else list(cast(Iterable[object], inputs))
    names = [name for name in given if isinstance(name, str | Path)]
    if other := [name for name in given if not isinstance(name, str | Path)]:
        what = f"a value of type {type(other[0]).__name__} is neither the name of a file nor a data frame"
        raise UsageError(what, remedy=f"give names of files, or {ACCEPTED}")
    names = [name for name in names if Path(name).resolve() != out]  # a shell's * may list `out` too
    if not names:
        raise UsageError("no input is given", remedy="name one or more files")
    return all_sources(names, wanted, out)


def _as_lender(settings: PrepareSettings, tokeniser: TokeniserSettings) -> TokeniserSettings:
    """The tokeniser of the folder that --vocab names, except for what the settings say.

    `borrow` refuses what contradicts the folder.
    """
    values = lender_of(settings.vocab or "")
    asked = changed(settings)
    if values is None:  # a vocab.json alone
        if "negation" not in asked:
            tokeniser = dataclasses.replace(tokeniser, negation=has_negated_words(settings.vocab or ""))
        return tokeniser.with_units("words" if settings.tokens == "auto" else settings.tokens)
    try:
        lent = TokeniserSettings.from_dict(values)
    except ValueError as error:
        raise StoreError(str(error), where=settings.vocab, remedy="use another --vocab") from None
    own: dict[str, Any] = {
        name: getattr(tokeniser, name) for name in ("clean", "marks", "stopwords", "negation") if name in asked
    }
    asked_for = dataclasses.replace(lent, **own)
    return asked_for.with_units(lent.units if settings.tokens == "auto" else settings.tokens)


def _prepare(engine: Engine, given: JobInput, out: Path, progress: Progress, began: float) -> PrepareResult:
    folders = JobFolders(out, _key(given))
    if (done := folders.finished()) is not None:
        folders.tidy()
        rows = done[0].rows
        limit = given.settings.max_rejects
        check_rejects(rows["read"], rows["rejected"], limit, lambda: read_first_reject(folders.out))
        progress.say(f"{folders.out} holds the result of this job already")
        return make_result(folders.out, *done)
    if not given.settings.cluster:  # the machines of a cluster compile for themselves
        announce(progress)
    with naming(folders.out), folders.working() as work:
        try:
            job = PrepareJob(work, given, engine, progress)
            manifest = job.run()
        except Unreachable:
            raise  # the next attempt may continue from here
        except (CorpusError, UsageError):
            folders.discard()  # the next attempt would fail in the same way
            raise
        report = _report(began, job)
        folders.publish(manifest, report)
    return make_result(folders.out, manifest, report)


def _key(given: JobInput) -> str:
    """Identifies the job: a hash of its inputs and of every setting that changes the result.

    A setting that names a file counts by the content of the file.
    """
    settings, vocabulary = given.settings, given.vocabulary
    files = [(source.shown, source.size, source.stamp) for source in given.sources]
    values = {name: getattr(settings, name) for name in settings.result_fields}
    values |= {"stopwords": list(given.tokeniser.stopwords), "vocab": vocabulary and vocabulary.sha256}
    return hashlib.sha256(json.dumps([__version__, files, values]).encode()).hexdigest()


def _report(began: float, job: PrepareJob) -> JobReport:
    return JobReport(
        seconds=time.monotonic() - began,
        stages=job.seconds,
        bytes=sum(source.size for source in job.sources),
        inputs=tuple(source.shown for source in job.sources),
        engine=job.engine.name,
        workers=job.engine.workers,
        tenor=__version__,
    )
