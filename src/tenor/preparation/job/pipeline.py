"""The stages of a job from top to bottom: map → dedupe → count → merge → translate → shard → manifest."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tenor.corpus.files.source import Source
from tenor.corpus.labels import NO_RATING, sort_key
from tenor.corpus.pieces import plan
from tenor.engines.protocol import Engine
from tenor.engines.stage import JobStage
from tenor.preparation.job.accounting import (
    account,
    check_classes,
    check_rejects,
    check_rows,
    count_read,
    count_rejected,
    list_rejects,
    write_rejects,
)
from tenor.preparation.job.outputs import finished, link, making, save_result
from tenor.preparation.job.reading import PieceCounts
from tenor.preparation.job.stages import mapping
from tenor.preparation.job.stages.counting import CountTask, MergeTask, collect_vocabulary, count_slice, merge_part
from tenor.preparation.job.stages.dedupe import DedupeResult, DedupeTask, dedupe_part
from tenor.preparation.job.stages.mapping import MapResult, MapTask, map_piece
from tenor.preparation.job.stages.sharding import ShardTask, make_shard, overlapping_parts, shard_bits
from tenor.preparation.job.stages.translating import TranslateTask, translate_slice
from tenor.preparation.job.work_folder import REJECTS, VOCABULARY, WorkFolder, shard_file
from tenor.preparation.rules import settle_rule, start_rule
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.tokenise import TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, Vocabulary
from tenor.progress import Progress
from tenor.store.atomic import sync
from tenor.store.manifest import ALL_SPLITS, SPLITS, Manifest, ShardInfo, SplitInfo, text_rule

TEXT_PART_BYTES = 256 << 20  # raw text per text part
WORD_PART_BYTES = 64 << 20  # distinct words per word part
_MIN_WORD_BITS = 2  # at least 2^2 word parts, so that several workers can merge counts
_UNPACKED = 4  # assumed size of a compressed file's content, relative to the file

T = TypeVar("T")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class JobInput:
    """What a job works on."""

    sources: list[Source]
    settings: PrepareSettings
    tokeniser: TokeniserSettings
    vocabulary: Vocabulary | None  # of --vocab; None: count the words


@dataclasses.dataclass(frozen=True)
class VocabularyResult:
    units: str  # what the entries of the vocabulary are: words or characters


class PrepareJob:
    """One run of all stages in a work folder."""

    def __init__(self, work: WorkFolder, given: JobInput, engine: Engine, progress: Progress) -> None:
        self.work, self.engine, self.progress = work, engine, progress
        self.sources, self.settings, self.tokeniser = given.sources, given.settings, given.tokeniser
        self.given_vocabulary = given.vocabulary
        self.seconds: dict[str, float] = {}  # of each stage, by its title
        self.slices: tuple[int, ...] = ()  # numbers of all slices
        self.pieces = plan(self.sources)
        raw = sum(source.size * (_UNPACKED if source.kind.compression else 1) for source in self.sources)
        self.part_bits = _bits(raw, TEXT_PART_BYTES)
        self.rule = start_rule(self.settings, self.sources)
        self.splits = ALL_SPLITS if self.settings.unlabelled else SPLITS

    def run(self) -> Manifest:
        mapped = self._map()
        counts = [piece.counts for piece in mapped]
        self._check(counts)
        found = [[name for name in piece.ratings if name != NO_RATING] for piece in counts]
        ratings = sorted({name for names in found for name in names}, key=sort_key)
        seen = ((piece.source.kind.format, names) for piece, names in zip(self.pieces, found, strict=True))
        self.rule = settle_rule(self.rule, self.settings, seen)
        self.slices = tuple(mapping.slice_numbers(mapped))
        parts = self._dedupe(ratings)
        self._check_classes(parts, ratings)
        vocabulary, units = self._vocabulary()
        self.tokeniser = self.tokeniser.with_units(units)
        shards = self._shards(parts, len(vocabulary))
        self._assemble(shards, vocabulary)
        return self._manifest(counts, parts, shards, vocabulary)

    def _run(
        self,
        title: str,
        stage: JobStage[T, R],
        tasks: Sequence[T],
        *,
        total: float | None = None,
        unit: str = "tasks",
        advance: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Run a stage and show its progress, by default in tasks."""
        self.progress.start(title, len(tasks) if total is None else total, unit)
        began = time.monotonic()
        results = stage.run(self.engine, tasks, advance or (lambda result: self.progress.advance(1)))
        self.progress.finish()
        self.seconds[title] = time.monotonic() - began
        return results

    def _map(self) -> list[MapResult]:
        tasks = [
            MapTask(
                work=self.work,
                number=number,
                num_pieces=len(self.pieces),
                piece=piece,
                rule=self.rule,
                tokeniser=self.tokeniser,
                max_length=self.settings.max_length,
                part_bits=self.part_bits,
            )
            for number, piece in enumerate(self.pieces)
        ]
        began, rows = time.monotonic(), 0

        def advance(result: MapResult) -> None:
            nonlocal rows
            rows += result.counts.read
            note = f"{rows / max(time.monotonic() - began, 1e-9):,.0f} rows/s" if rows else ""
            self.progress.advance(result.counts.bytes, note)

        size = sum(piece.size for piece in self.pieces)
        return self._run("reading", map_piece, tasks, total=size, unit="B", advance=advance)

    def _check(self, counts: Sequence[PieceCounts]) -> None:
        def first() -> tuple[str, int]:
            row = next(list_rejects(self.pieces, self.work))
            return row.file, row.line

        check_rows(counts, self.pieces)
        check_rejects(count_read(counts), count_rejected(counts), self.settings.max_rejects, first)

    def _check_classes(self, parts: list[DedupeResult], ratings: list[str]) -> None:
        if self.settings.unlabelled and not ratings:
            self.progress.warn("no row has a rating: the data is for word vectors, and cannot train a classifier")
        else:
            check_classes(parts, self.rule, ratings)

    def _dedupe(self, ratings: list[str]) -> list[DedupeResult]:
        tasks = [
            DedupeTask(
                work=self.work,
                number=number,
                slices=self.slices,
                dedupe=self.settings.dedupe,
                rule=self.rule,
                ratings=tuple(ratings),
                valid_share=self.settings.valid_share,
                test_share=self.settings.test_share,
                split_seed=self.settings.split_seed,
            )
            for number in range(1 << self.part_bits)
        ]
        return self._run("removing duplicates", dedupe_part, tasks)

    def _vocabulary(self) -> tuple[Vocabulary, str]:
        """The vocabulary, and whether its entries are words or characters."""
        folder = self.work.vocabulary
        if (known := finished(folder, VocabularyResult)) is None:
            given = self.given_vocabulary
            vocabulary, units = (given, self.tokeniser.units) if given else self._count()
            with making(folder) as temporary:
                vocabulary.save(temporary / VOCABULARY)
                known = save_result(temporary, VocabularyResult(units))
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        tasks = [TranslateTask(self.work, number, vocabulary.sha256, known.units) for number in self.slices]
        self._run("numbering words", translate_slice, tasks)
        return vocabulary, known.units

    def _count(self) -> tuple[Vocabulary, str]:
        num_parts = 1 << self.part_bits
        tasks = [CountTask(self.work, number, index, num_parts) for index, number in enumerate(self.slices)]
        counted = self._run("counting words", count_slice, tasks)
        bits = max(_MIN_WORD_BITS, _bits(sum(result.word_bytes for result in counted), WORD_PART_BYTES))
        top = self.settings.vocab_size - FIRST_WORD
        merges = [MergeTask(self.work, number, bits, self.slices, top) for number in range(1 << bits)]
        self._run("merging counts", merge_part, merges)
        return collect_vocabulary(self.work, 1 << bits, top, self.settings.tokens)

    def _shards(self, parts: list[DedupeResult], vocab_size: int) -> list[ShardInfo]:
        tasks: list[ShardTask] = []
        for index, split in enumerate(self.splits):
            tokens = sum(part.splits[index].tokens for part in parts)
            bits = shard_bits(tokens)
            for shard in range(1 << bits) if tokens else ():
                task = ShardTask(
                    work=self.work,
                    number=len(tasks),
                    split=split,
                    shard=shard,
                    shard_bits=bits,
                    parts=overlapping_parts(shard, bits, self.part_bits),
                    vocab_size=vocab_size,
                    units=self.tokeniser.units,
                    max_length=self.settings.max_length,
                    file=shard_file(split, shard),
                )
                tasks.append(task)
        return self._run("writing shards", make_shard, tasks)

    def _assemble(self, shards: list[ShardInfo], vocabulary: Vocabulary) -> None:
        """Put all files of the result into one folder, except job.json and the manifest."""
        final = self.work.final
        if final.exists():  # of an attempt that was stopped, perhaps with incomplete files
            shutil.rmtree(final)
        for number, shard in enumerate(shards):
            target = final / shard.file
            target.parent.mkdir(parents=True, exist_ok=True)
            link(self.work.shard(number) / target.name, target)
        for split in {Path(shard.file).parent for shard in shards}:
            sync(final / split)
        vocabulary.save(final / VOCABULARY)
        write_rejects(final / REJECTS, self.pieces, self.work)

    def _manifest(
        self,
        counts: list[PieceCounts],
        parts: list[DedupeResult],
        shards: list[ShardInfo],
        vocabulary: Vocabulary,
    ) -> Manifest:
        splits = {}
        for index, split in enumerate(self.splits):
            found = [part.splits[index] for part in parts]
            classes = tuple(sum(column) for column in zip(*(totals.classes for totals in found), strict=True))
            mine = tuple(shard for shard in shards if shard.file.startswith(f"{split}/"))
            num_rows, tokens = sum(totals.rows for totals in found), sum(shard.tokens for shard in mine)
            splits[split] = SplitInfo(num_rows, tokens, classes, mine)
        rows = account(
            counts,
            duplicates=sum(part.duplicates for part in parts),
            neutral=sum(part.neutral for part in parts),
            kept=sum(split.rows for split in splits.values()),
        )
        return Manifest(
            classes=self.rule.classes,
            vocab_size=len(vocabulary),
            vocab_sha256=vocabulary.sha256,
            max_length=self.settings.max_length,
            tokeniser=self.tokeniser.as_dict(),
            labels=dict(self.rule.as_dict()),
            rows=dataclasses.asdict(rows),
            splits=splits,
            text=text_rule(self.settings.title_column),
        )


def _bits(size: int, part_size: int) -> int:
    """The smallest `bits` such that 2^bits parts of `part_size` hold `size`."""
    return max(0, (-(-size // part_size) - 1).bit_length())
