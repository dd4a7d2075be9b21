"""The map-reduce job, top to bottom: map → dedupe → count → vocabulary → shards → manifest."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tenor import __version__
from tenor.corpus.columns import Wanted
from tenor.corpus.labels import make_rule, rank
from tenor.corpus.pieces import plan
from tenor.corpus.sources import Source, find_sources
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine, Task
from tenor.engines.settings import EngineSettings
from tenor.environment import usable_cores
from tenor.errors import CorpusError, Unreachable, UsageError, naming
from tenor.preparation import counting, dedupe, mapping, sharding
from tenor.preparation.accounting import (
    account,
    check_classes,
    check_rejects,
    check_rows,
    list_rejects,
    read_and_rejected,
    read_first_reject,
    write_rejects,
)
from tenor.preparation.place import Place
from tenor.preparation.result import PrepareResult, make_result
from tenor.preparation.rules import settle_rule
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.stopwords import read_stopwords
from tenor.preparation.tokeniser import TokeniserSettings
from tenor.preparation.vocabulary import FIRST_WORD, Vocabulary, borrow
from tenor.preparation.workfolder import finished, link, making, part_path, save_meta
from tenor.progress import SILENT, Progress
from tenor.store.atomic import sync
from tenor.store.manifest import SPLITS, Manifest, ShardInfo, SplitInfo

_DEFAULTS = PrepareSettings()
_PART_BYTES = 256 << 20  # of raw text that one part of the dedupe answers for
_WORD_BYTES = 64 << 20  # of distinct words that one part of the vocabulary answers for
_WORD_BITS = 2  # at least so many parts, as a power of two, so that several workers can add up counts


def prepare(
    inputs: Sequence[str | Path] | str | Path,
    out: str | Path,
    settings: PrepareSettings = _DEFAULTS,
    progress: Progress = SILENT,
) -> PrepareResult:
    """Turn raw review files into a folder of token shards, and account for every row.

    Running the same job again takes it up where it stopped; a finished one is not done twice.
    """
    engine = make_engine(_engine_settings(settings))
    try:
        return prepare_on(engine, inputs, out, settings, progress)
    finally:
        engine.close()


def prepare_on(
    engine: Engine,
    inputs: Sequence[str | Path] | str | Path,
    out: str | Path,
    settings: PrepareSettings = _DEFAULTS,
    progress: Progress = SILENT,
) -> PrepareResult:
    """The same on an engine that is up, and stays up."""
    began = time.monotonic()
    names = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    names = [name for name in names if Path(name).resolve() != Path(out).resolve()]  # as a shell's * would have it
    if not names:
        raise UsageError("no input is given", remedy="name one or more files")
    sources = find_sources(names, Wanted(settings.text_column, settings.label_column, settings.title_column))
    tokeniser = TokeniserSettings(settings.clean, settings.marks, read_stopwords(settings.stopwords)).as_dict()
    borrowed = borrow(settings.vocab, tokeniser) if settings.vocab else None
    place = Place(Path(out), _key(sources, settings, tokeniser, borrowed))
    if (done := place.done()) is not None:
        place.tidy()
        check_rejects(done[0].rows, settings.max_rejects, lambda: read_first_reject(place.out))
        progress.say(f"{place.out} holds this job's result already")
        return make_result(place.out, *done)
    with naming(place.out), place.working() as work:
        try:
            job = Job(work, sources, settings, tokeniser, borrowed, engine, progress)
            manifest = job.run()
        except Unreachable:
            raise  # trying again may go on from here
        except (CorpusError, UsageError):
            place.discard()  # trying again would give the same answer: leave nothing behind
            raise
        told = _told(began, job)
        place.publish(manifest, told)
    return make_result(place.out, manifest, told)


def _engine_settings(settings: PrepareSettings) -> EngineSettings:
    names = {field.name for field in dataclasses.fields(EngineSettings)}
    values = {name: getattr(settings, name) for name in names}
    return EngineSettings(**{**values, "workers": settings.workers or usable_cores()})


def _key(sources: list[Source], settings: PrepareSettings, tokeniser: Task, borrowed: Vocabulary | None) -> str:
    """Names the job: its inputs and every setting that changes the result, by content where it names a file."""
    files = [(source.path, source.size, source.stamp) for source in sources]
    values = {name: getattr(settings, name) for name in settings.result_fields}
    values |= {"stopwords": tokeniser["stopwords"], "vocab": borrowed and borrowed.sha256}
    return hashlib.sha256(json.dumps([__version__, files, values]).encode()).hexdigest()


def _told(began: float, job: Job) -> dict[str, Any]:
    """What job.json tells: what was done where, and on what its time was spent."""
    return {
        "seconds": time.monotonic() - began,
        "stages": job.seconds,
        "bytes": sum(source.size for source in job.sources),
        "inputs": [source.path for source in job.sources],
        "engine": job.engine.name,
        "workers": job.engine.workers,
        "tenor": __version__,
    }


class Job:
    """One run of the stages in a working folder."""

    def __init__(
        self,
        work: Path,
        sources: list[Source],
        settings: PrepareSettings,
        tokeniser: Task,
        borrowed: Vocabulary | None,  # from another run; None: count words
        engine: Engine,
        progress: Progress,
    ) -> None:
        self.work, self.sources, self.settings, self.engine, self.progress = work, sources, settings, engine, progress
        self.tokeniser, self.borrowed = tokeniser, borrowed
        self.seconds: dict[str, float] = {}  # of each stage, by its title
        self.slices: list[int] = []  # the folders that hold the pieces' rows
        self.pieces = plan(sources)
        raw = sum(source.size * (4 if source.kind.compression else 1) for source in sources)
        self.bits = max(0, (-(-raw // _PART_BYTES) - 1).bit_length())
        self.rule = make_rule(settings.labels, settings.negative, settings.positive)

    def run(self) -> Manifest:
        mapped = self._map()
        check_rows(mapped, self.pieces)
        check_rejects(
            read_and_rejected(mapped), self.settings.max_rejects, lambda: next(list_rejects(self.pieces, self.work))
        )
        ratings = sorted({name for piece in mapped for name in piece["ratings"]}, key=rank)
        seen = ((piece.source.kind.format, told["ratings"]) for piece, told in zip(self.pieces, mapped, strict=True))
        self.rule = settle_rule(self.rule, self.settings, seen)
        self.slices = mapping.slice_numbers(mapped)
        parts = self._dedupe(ratings)
        check_classes(parts, self.rule, ratings)
        vocabulary = self._vocabulary()
        shards = self._shards(parts, len(vocabulary))
        self._place_files(shards, vocabulary)
        return self._manifest(mapped, parts, shards, vocabulary)

    def _stage(self, title: str, stage: str, tasks: list[Task], sizes: list[int] | None = None) -> list[Task]:
        self.progress.start(title, sum(sizes) if sizes else len(tasks), "B" if sizes else "parts")
        numbered = [{"work": str(self.work), "number": i, **task} for i, task in enumerate(tasks)]
        mean = sum(sizes) / len(sizes) if sizes else 1
        began, rows = time.monotonic(), 0

        def done(result: Task) -> None:
            nonlocal rows
            rows += result.get("read", 0)
            note = f"{rows / max(time.monotonic() - began, 1e-9):,.0f} rows/s" if rows else ""
            self.progress.advance(result.get("bytes", mean), note)

        results = self.engine.run(stage, numbered, done)
        self.progress.finish()
        self.seconds[title] = time.monotonic() - began
        return results

    def _map(self) -> list[Task]:
        shared = {
            "bits": self.bits,
            "max_length": self.settings.max_length,
            "tokeniser": self.tokeniser,
            "rule": self.rule.as_dict(),
            "stride": len(self.pieces),
        }
        tasks = [{**shared, "piece": piece.as_dict()} for piece in self.pieces]
        return self._stage("reading", mapping.STAGE, tasks, [piece.size for piece in self.pieces])

    def _dedupe(self, ratings: list[str]) -> list[Task]:
        shared = {
            "slices": self.slices,
            "dedupe": self.settings.dedupe,
            "rule": self.rule.as_dict(),
            "ratings": ratings,
            "shares": [self.settings.valid_share, self.settings.test_share],
            "split_seed": self.settings.split_seed,
        }
        return self._stage("removing duplicates", dedupe.STAGE, [shared] * (1 << self.bits))

    def _vocabulary(self) -> Vocabulary:
        folder = part_path(str(self.work), "vocabulary", 0)
        if finished(folder) is None:
            vocabulary = self.borrowed or self._count()
            with making(folder) as temporary:
                vocabulary.save(temporary / "vocab.json")
                save_meta(temporary, {})
        vocabulary = Vocabulary.load(folder / "vocab.json")
        tasks = [{"number": number, "vocab_sha256": vocabulary.sha256} for number in self.slices]
        self._stage("numbering words", counting.TRANSLATE_STAGE, tasks)
        return vocabulary

    def _count(self) -> Vocabulary:
        parts = 1 << self.bits
        tasks = [{"number": number, "place": i, "parts": parts} for i, number in enumerate(self.slices)]
        counted = self._stage("counting words", counting.COUNT_STAGE, tasks)
        size = sum(piece["word_bytes"] for piece in counted)
        bits = max(_WORD_BITS, (-(-size // _WORD_BYTES) - 1).bit_length())
        top = self.settings.vocab_size - FIRST_WORD
        task = {"bits": bits, "slices": self.slices, "top": top}
        self._stage("merging counts", counting.MERGE_STAGE, [task] * (1 << bits))
        return counting.collect(str(self.work), 1 << bits, top)

    def _shards(self, parts: list[Task], vocab_size: int) -> list[Task]:
        tasks = []
        for index, split in enumerate(SPLITS):
            tokens = sum(part["splits"][index]["tokens"] for part in parts)
            bits = sharding.shard_bits(tokens)
            for shard in range(1 << bits) if tokens else ():
                task = {"split": split, "shard": shard, "bits": bits, "vocab_size": vocab_size}
                tasks.append({**task, "parts": _overlapping(shard, bits, self.bits), "file": f"{split}/{shard:05d}.h5"})
        return self._stage("writing shards", sharding.STAGE, tasks)

    def _place_files(self, shards: list[Task], vocabulary: Vocabulary) -> None:
        final = self.work / "final"
        if final.exists():  # of an attempt that was stopped, perhaps with files half written
            shutil.rmtree(final)
        for number, shard in enumerate(shards):
            target = final / shard["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            link(part_path(str(self.work), sharding.FOLDER, number) / target.name, target)
        for split in {Path(shard["file"]).parent for shard in shards}:
            sync(final / split)
        vocabulary.save(final / "vocab.json")
        write_rejects(final / mapping.REJECTS, self.pieces, self.work)

    def _manifest(self, mapped: list[Task], parts: list[Task], shards: list[Task], vocabulary: Vocabulary) -> Manifest:
        infos = [ShardInfo(**shard) for shard in shards]
        splits = {}
        for index, split in enumerate(SPLITS):
            found = [part["splits"][index] for part in parts]
            classes = tuple(sum(column) for column in zip(*(part["classes"] for part in found), strict=True))
            mine = tuple(info for info in infos if info.file.startswith(f"{split}/"))
            splits[split] = SplitInfo(sum(classes), sum(part["tokens"] for part in found), classes, mine)
        return Manifest(
            classes=self.rule.classes,
            vocab_size=len(vocabulary),
            vocab_sha256=vocabulary.sha256,
            max_length=self.settings.max_length,
            tokeniser=self.tokeniser,
            labels=dict(self.rule.as_dict()),
            rows=account(mapped, parts, sum(split.rows for split in splits.values())),
            splits=splits,
        )


def _overlapping(shard: int, bits: int, part_bits: int) -> list[int]:
    """The parts whose hashes meet the shard's."""
    if bits >= part_bits:
        return [shard >> (bits - part_bits)]
    width = 1 << (part_bits - bits)
    return list(range(shard * width, (shard + 1) * width))
