"""The reviews task: prepared data, the wide and deep classifier, its loss and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tenor.errors import TrainingError, UsageError
from tenor.evaluation.decision import choose_threshold
from tenor.evaluation.goal import Goal
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.groups import Group
from tenor.models.classifier import ReviewNetwork
from tenor.models.combination import fit_combination
from tenor.models.deep.part import Deep, initialise
from tenor.models.inference import Inference, to_probabilities
from tenor.models.spec import DeepSpec, ModelSpec, WideSpec
from tenor.models.wide.characters import hash_characters
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, vocabulary_of
from tenor.store.manifest import SPLITS, Manifest
from tenor.store.reader import Split, open_split
from tenor.store.reference import Reference, sample
from tenor.training.batch import TrainBatch
from tenor.training.optim.optimizers import Adagrad, RuleOfPart
from tenor.training.optim.precision import check_precision
from tenor.training.settings import OWN_VECTORS, TrainSettings
from tenor.training.tasks.ancestor import Ancestor
from tenor.training.tasks.base import CardText, Task
from tenor.training.tasks.losses import make_objective, parse_weights
from tenor.training.tasks.model_size import refuse_too_large
from tenor.training.tasks.negation.contexts import RowSource
from tenor.training.tasks.negation.rows import WithRows, make_rows
from tenor.training.tasks.pretrained import learning_seconds, read_vectors, start_vectors
from tenor.training.tasks.rehearsal import load_combination, seconds_of
from tenor.training.tasks.review_batches import WORDS, ReviewBatches

EVALUATION_BATCH = 256
READ_ROWS = 8192  # rows whose words are counted together
WIDE_START = 0.064  # of the root of Adagrad's sums; a gradient has about 1/(parts × batch size) times this from one row
VECTOR_SIZE = 0.2  # to which pretrained vectors are scaled: the root of the mean square of their numbers
FEWEST_BITS, MOST_BITS = 16, 24  # of a table of n-grams whose size follows from the data
CARD_USE = """The figures hold
for reviews like those in the data. Measure again for other products, times, lengths or languages.

## Use

    import tenor
    tenor.load("path/to/this/folder").predict(["not bad at all"])

or `tenor predict path/to/this/folder reviews.txt`. No file here is executed when it is loaded: weights are safetensors,
the rest is JSON.
"""


@dataclass(frozen=True)
class _Missing:
    """Words of the vocabulary that the pretrained vectors do not have."""

    num_words: int  # of the vocabulary
    words: int
    token_share: float  # of all training tokens that are words of the vocabulary

    @classmethod
    def count(cls, train: Split, places: NDArray[np.int64], num_words: int) -> _Missing:
        counts = np.zeros(num_words + FIRST_WORD, np.int64)
        for start in range(0, len(train), READ_ROWS):
            tokens, _ = train.gather(np.arange(start, min(start + READ_ROWS, len(train))))
            counts += np.bincount(tokens, minlength=len(counts))
        of_words = counts[FIRST_WORD:]
        share = 1.0 - of_words[places].sum() / max(1, of_words.sum())
        return cls(num_words, num_words - len(places), float(share))


class Reviews(Task):
    def __init__(self, data: Path, settings: TrainSettings, run: Path | None = None) -> None:
        self.data = data
        self.vectors = start_vectors(settings, run)
        self.manifest = Manifest.load(data)
        self.settings = settings
        self.vocabulary = data / "vocab.json"
        counts = self.manifest.splits["train"].class_counts
        if sum(count > 0 for count in counts) < 2:
            held = dict(zip(self.manifest.classes, counts, strict=True))
            what = f"all training rows have the same class ({held})" if sum(counts) else "no training row has a label"
            raise TrainingError(what, where=data, remedy="prepare data that has rows of at least two classes")
        if settings.optimise and len(counts) > 2:
            remedy = "omit it; --class-weights auto makes rare classes count more"
            raise UsageError(f"--optimise {settings.optimise} needs two classes, not {len(counts)}", remedy=remedy)
        self.has_valid = self.manifest.splits["valid"].rows > 0
        if not self.has_valid and not settings.from_run:  # a run that starts from another one keeps its threshold
            _refuse_without_valid(settings, data)
        self.splits = {name: open_split(data, name, verify=False) for name in SPLITS}
        self.missing: _Missing | None = None  # words without a pretrained vector
        objective = make_objective(settings.loss, len(counts), parse_weights(settings.class_weights, counts))
        self.spec = _make_spec(self.manifest, settings)
        refuse_too_large(self.spec, run if settings.resume else None)
        smoothing = ((0.0,) if self.spec.wide else ()) + ((settings.label_smoothing,) if self.spec.deep else ())
        self.objective = replace(objective, smoothing=smoothing)
        rows = Split(data, self.manifest, *SPLITS) if settings.all_rows else self.splits["train"]
        self.read: Split = rows  # the training rows without those that are added
        self.train: RowSource = rows
        if settings.negation_rows and _has_opinions(self.manifest):
            added = make_rows(rows, vocabulary_of(data).words, settings.negation_rows, settings.seed)
            self.num_added, self.train = len(added), WithRows(rows, added) if len(added) else rows
        self.run = run
        words = vocabulary_of(data).words if self.spec.wide and self.spec.wide.characters else ()
        self.characters = hash_characters(words, FIRST_WORD, settings.characters if words else 0)
        self.batches = ReviewBatches(self.train, self.spec, settings, self.objective, self.characters)
        self.ancestor = Ancestor(Path(settings.from_run), self.spec) if settings.from_run else None
        if self.ancestor is not None and self.spec.wide:
            self.batches.raise_importance(self.ancestor.weights["wide.importance"].numpy())
        self.order = self.batches.order

    @classmethod
    def make(cls, data: Path, settings: TrainSettings, run: Path | None) -> Task:
        return cls(data, settings, run)

    def check_device(self, device: torch.device) -> None:
        check_precision(self.settings.precision, self.settings.cell, device)

    def make_model(self) -> ReviewNetwork:
        model = ReviewNetwork(self.spec)
        if self.ancestor is not None:
            self._descend(model, self.ancestor)
        else:
            self._start(model)
        if self.settings.all_rows:
            assert self.run is not None
            load_combination(model, self.run)
        return model

    def _start(self, model: ReviewNetwork) -> None:
        """Begin from scratch."""
        model.combination.start()
        if model.wide is not None:
            model.wide.start(self.batches.importance)
            model.wide.characters = self.characters
        if model.deep is not None:
            initialise(model.deep, self.settings.seed)
            if self.vectors is not None:
                self._load_vectors(model.deep, self.vectors)

    def _descend(self, model: ReviewNetwork, ancestor: Ancestor) -> None:
        """Begin with the weights of another run. Its combination holds until validation rows fit another one."""
        ancestor.start(model)
        if not self.settings.optimise:
            model.combination.threshold.fill_(0.5)
        if model.wide is not None:
            model.wide.reweigh(self.batches.importance)
            model.wide.characters = self.characters

    def part_rules(self, peak: float) -> Sequence[RuleOfPart]:
        """Adagrad for the wide part: its gradients are sparse, and rare n-grams need as large steps as frequent ones.

        Its sums do not start at 0, or the first step of every n-gram would be the largest one, whatever its gradient.
        """
        start = WIDE_START / (self.spec.num_parts * self.settings.batch_size)
        return [RuleOfPart("wide.", Adagrad(start=start * start), self.settings.wide_lr / peak)]

    def _load_vectors(self, model: Deep, path: Path) -> None:
        words = vocabulary_of(self.data).words
        found = read_vectors(path, words, model.spec.embedding_dim)
        table = model.embedding.weight
        with torch.no_grad():
            size = float(np.sqrt(np.square(found.vectors, dtype=np.float64).mean()))
            vectors = found.vectors * np.float32(VECTOR_SIZE / size if size else 1.0)
            table[found.places + FIRST_WORD] = torch.from_numpy(vectors).to(table.dtype)
        self.missing = _Missing.count(self.read, found.places, len(words))

    @property
    def seconds_before(self) -> float:
        """Those of the word vectors and of the rehearsal."""
        rehearsal = seconds_of(self.run) if self.settings.all_rows and self.run is not None else 0.0
        return self._vector_seconds + rehearsal

    @property
    def _vector_seconds(self) -> float:
        """How long the word vectors took, if they are this run's own."""
        is_own = self.vectors is not None and self.settings.embeddings == OWN_VECTORS
        return learning_seconds(self.vectors) if is_own and self.vectors is not None else 0.0

    @property
    def known(self) -> dict[str, float]:
        missing = self.missing
        if missing is None:
            return {}
        seconds = {"vector_seconds": self._vector_seconds} if self._vector_seconds else {}
        return {"missing_words": missing.words, "missing_tokens": missing.token_share, **seconds}

    @property
    def notes(self) -> list[str]:
        missing = self.missing
        added = f"added {self.num_added:,} short rows that show what negation does (--negation-rows 0 for none)"
        notes = [added] if self.num_added else []
        if not self.has_valid and not self.ancestor:
            notes += ["no validation rows calibrate the probabilities (tenor prepare --valid-share 0.1)"]
        if missing is None:
            return notes
        if not missing.words:
            return notes
        start = f"{self.vectors} has vectors for {missing.num_words - missing.words:,} words of the data"
        rest = f"the {missing.words:,} others start at random ({missing.token_share:.2%} of the training tokens)"
        return [*notes, f"{start}; {rest}"]

    def frozen(self, epoch: int) -> tuple[str, ...]:
        return (f"{WORDS}.weight",) if epoch < self.settings.freeze_embeddings else ()

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        return self.batches.load(epoch, k, own)

    def validate(self, model: nn.Module, group: Group) -> Metrics | None:
        """Fit the combination of the model's parts before measuring it. With all rows, there are none to measure on."""
        if self.settings.all_rows:
            return None
        logits, labels = self._logits(model, "valid", group)
        if not len(labels):
            return None
        weights = np.asarray(self.objective.class_weights)[labels]
        assert isinstance(model, ReviewNetwork)
        model.combination.set(*fit_combination(logits.astype(np.float64), labels, weights))
        if self.settings.optimise:
            goal, chances = Goal.parse(self.settings.optimise), to_probabilities(model, logits)
            model.combination.threshold.fill_(choose_threshold(goal, chances, labels))
        return self._measure(model, logits, labels)

    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        if self.settings.all_rows:
            return None
        logits, labels = self._logits(model, split, group)
        return self._measure(model, logits, labels) if len(labels) else None

    def score(self, model: nn.Module, split: str, group: Group) -> Scores | None:
        if self.settings.all_rows:
            return None
        logits, labels = self._logits(model, split, group)
        if not len(labels):
            return None
        batches = self._batches(split)
        places = np.argsort(np.concatenate([b for rank in range(group.size) for b in batches[rank :: group.size]]))
        assert isinstance(model, ReviewNetwork)
        found = Scores(float(model.combination.threshold))
        found.add(to_probabilities(model, logits)[places], labels[places])
        return found

    def _batches(self, split: str) -> list[NDArray[np.int64]]:
        """The rows of a split, those of similar length together; every rank evaluates some batches."""
        rows = np.argsort(self.splits[split].lengths, kind="stable")
        return [rows[at : at + EVALUATION_BATCH] for at in range(0, len(rows), EVALUATION_BATCH)]

    def _logits(self, model: nn.Module, split: str, group: Group) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """(parts, rows, outputs) and the labels of a split, computed together by the group; the same on all ranks."""
        assert isinstance(model, ReviewNetwork)
        part, inference = self.splits[split], Inference(model)
        own = self._batches(split)[group.rank :: group.size]
        shape = (-1, self.spec.num_parts, self.spec.num_outputs)
        found = [inference.logits(*part.gather(batch)).swapaxes(0, 1) for batch in own]
        flat = torch.from_numpy(np.concatenate([np.empty((0, *shape[1:]), np.float32), *found]).flatten())
        labels = torch.from_numpy(part.labels[np.concatenate([np.empty(0, np.int64), *own])].astype(np.int64))
        return group.gather(flat).numpy().reshape(shape).swapaxes(0, 1), group.gather(labels).numpy()

    def _measure(self, model: nn.Module, logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Metrics:
        assert isinstance(model, ReviewNetwork)
        total = Scores(float(model.combination.threshold))
        total.add(to_probabilities(model, logits), labels)
        return measure(total, self.manifest.classes)

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.spec.as_dict(),
            "classes": list(self.manifest.classes),
            "labels": self.manifest.labels,
            "tokeniser": self.manifest.tokeniser,
            "max_length": self.manifest.max_length,
            **({"text": self.manifest.text} if self.manifest.text else {}),
            "data_sha256": self.manifest.sha256,
            "vocab_sha256": self.manifest.vocab_sha256,
            **({"ancestor": self.ancestor.record} if self.ancestor else {}),
        }

    def reference(self) -> Reference:
        return sample(self.splits)

    def card(self) -> CardText:
        lines = [f"{_describe_wide(self.spec.wide)}; adagrad at {self.settings.wide_lr:g}"] if self.spec.wide else []
        lines += [_describe_deep(self.spec.deep)] if self.spec.deep else []
        lines += [f"data `{self.manifest.sha256}`"]
        if self.ancestor:
            lines += [f"started from the run with the final weights `{self.ancestor.record['weights_sha256']}`"]
        facts = "\n".join(f"- {line}" for line in lines)
        title = f"Sentiment model: {self.settings.model}, {' / '.join(self.manifest.classes)}"
        return CardText(title, f"A classifier of reviews, trained with tenor.\n\n{facts}", CARD_USE)

    def close(self) -> None:
        for part in (self.read, *self.splits.values()):
            part.close()


def _refuse_without_valid(settings: TrainSettings, data: Path) -> None:
    """Raise UsageError if a setting needs validation rows."""
    for name in ("optimise", "patience"):
        if value := getattr(settings, name):
            remedy = f"omit --{name}, or prepare the data with --valid-share 0.1"
            raise UsageError(f"--{name} {value} has no effect without validation rows", where=data, remedy=remedy)


def _has_opinions(manifest: Manifest) -> bool:
    """Whether rows of this data can show what negation does: words of two classes."""
    return len(manifest.classes) == 2 and manifest.tokeniser.get("units", "words") == "words"


def _make_spec(manifest: Manifest, settings: TrainSettings) -> ModelSpec:
    has_wide, has_deep = settings.model != "deep", settings.model != "wide"
    bits = settings.ngram_bits or choose_bits(manifest.splits["train"].tokens)
    deep = DeepSpec(
        vocab_size=manifest.vocab_size,
        cell=settings.cell,
        embedding_dim=settings.embedding_dim,
        hidden=settings.hidden,
        layers=settings.layers,
        bidirectional=settings.bidirectional,
        pooling=settings.pooling,
        dropout=settings.dropout,
        input_dropout=settings.input_dropout,
        window=settings.window,
        length=settings.deep_length,
    )
    return ModelSpec(
        num_classes=len(manifest.classes),
        wide=WideSpec(bits, settings.ngrams, settings.characters) if has_wide else None,
        deep=deep if has_deep else None,
    )


def choose_bits(num_tokens: int) -> int:
    """A table of n-grams about as large as the number of tokens: most n-grams occur once and are ignored."""
    return min(max(num_tokens.bit_length() - 1, FEWEST_BITS), MOST_BITS)


def _describe_wide(spec: WideSpec) -> str:
    words = f" and, within words, {spec.characters} characters" if spec.characters else ""
    return f"wide part: n-grams of up to {spec.longest} tokens{words}, hashed into {1 << spec.bits:,} buckets"


def _describe_deep(spec: DeepSpec) -> str:
    directions = "both directions" if spec.bidirectional else "one direction"
    return (
        f"deep part: cell {spec.cell}, {spec.layers} layer(s) of {spec.hidden}, {directions}, {spec.pooling} pooling; "
        f"{spec.vocab_size:,} words of width {spec.embedding_dim}; up to {spec.length} tokens of a review"
    )
