"""`tenor.load`: a trained model with its vocabulary and tokeniser, ready to predict. It needs no torch."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.environment import usable_cores
from tenor.errors import UsageError
from tenor.evaluation.decision import decide
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.negation import readable
from tenor.preparation.tokeniser.spans import token_spans
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD
from tenor.runtime.combined import CombinedParts, with_unknown
from tenor.runtime.compact import read_model
from tenor.runtime.explain import ExplainedPiece, deep_values, toward, wide_ngrams, word_values
from tenor.runtime.few_ngrams import FoundNgrams
from tenor.runtime.read_run import RunContents
from tenor.runtime.texts import Texts, as_texts

CHUNK = 1024  # texts that a thread handles at a time

T = TypeVar("T")


@dataclass(frozen=True)
class Prediction:
    """The most likely label of one review.

    If `known_words` is 0, the model knows no word of the review, and the label is only a guess.

    Attributes:
        label: Name of the most likely class.
        probability: Probability of that class.
        known_words: Words of the review that are in the model's vocabulary; ! and ? count if they are tokens.
    """

    label: str
    probability: float
    known_words: int

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON values.

        >>> tenor.load("run").predict(["not bad at all"])[0].as_dict()  # doctest: +SKIP
        {'label': 'positive', 'probability': 0.83, 'known_words': 4}
        """
        return asdict(self)


@dataclass(frozen=True)
class TextScores:
    """The scores of some texts.

    Attributes:
        probabilities: The probability of each class, (texts, classes).
        known_words: Words of each text that are in the model's vocabulary, (texts,).
    """

    probabilities: NDArray[np.float32]
    known_words: NDArray[np.int64]


@dataclass(frozen=True)
class TextNgrams:
    """The n-grams of some texts, one text after another.

    Attributes:
        tokens: The token ids of all texts.
        found: `starts` says where the n-grams of each text begin; each n-gram has its first token in `tokens`
            (`firsts`), its number of tokens (`sizes`) and what it adds to each logit (`values`).
        words: The vocabulary.
    """

    tokens: NDArray[np.int32]
    found: FoundNgrams
    words: Sequence[str]

    @property
    def starts(self) -> NDArray[np.int64]:
        """(texts + 1,): where the n-grams of each text begin."""
        return self.found.starts

    @property
    def values(self) -> NDArray[np.float64]:
        """(n-grams, outputs): what each n-gram adds to the logits."""
        return self.found.values

    def phrase(self, ngram: int) -> str:
        """Return the words of an n-gram; an unknown word is written as …

        Args:
            ngram: Its number among all n-grams.

        >>> tenor.load("run").contributions(["not bad at all"]).phrase(1)  # doctest: +SKIP
        'not bad'
        """
        first, size = int(self.found.firsts[ngram]), int(self.found.sizes[ngram])
        ids = self.tokens[first : first + size].tolist()
        return " ".join(readable(["…" if token < FIRST_WORD else self.words[token - FIRST_WORD] for token in ids]))


class SentimentModel:
    """A model loaded from a run folder by `tenor.load`. Threads may share it.

    Attributes:
        classes: The names of the classes, such as ("negative", "positive").
        config: The content of the run's config.json.
        threads: Threads that score many texts; one per core by default.
        threshold: The probability from which on the second of two classes is chosen.

    >>> model = tenor.load("run")  # doctest: +SKIP
    >>> model.predict(["not bad at all"])[0].label  # doctest: +SKIP
    'positive'
    """

    batch_rows = 4 * CHUNK  # of token ids that are scored together

    def __init__(self, contents: RunContents) -> None:
        self.encoder, self.config = contents.encoder, contents.config
        self.classes: tuple[str, ...] = tuple(contents.config["classes"])
        self.threads = usable_cores()
        self.parts = CombinedParts(contents.spec, contents.weights, contents.characters)
        self.threshold = float(contents.weights["combination.threshold"][0])
        self._idle: queue.SimpleQueue[Encoder] = queue.SimpleQueue()

    def predict(self, texts: Texts) -> list[Prediction]:
        """Predict the label of each text.

        Args:
            texts: A list, NumPy array, pandas or Polars column or Arrow array of strings, or a table with a column that
                `tenor prepare` would recognise. None, NaN and NA count as empty texts, so that there is one prediction
                per row; their `known_words` is 0. If the run's data was prepared with a title column, put each title
                before its text, with a space between.

        Returns:
            One prediction per text, in the same order.

        Raises:
            UsageError: `texts` is a single string, or contains a value that is not a string.
            RunError: The model gives probabilities that are not finite.

        >>> tenor.load("run").predict(["not bad at all"])  # doctest: +SKIP
        [Prediction(label='positive', probability=0.83, known_words=4)]
        """
        scores = self.score(texts)
        best = decide(scores.probabilities, self.threshold)
        chosen = scores.probabilities[np.arange(len(best)), best]
        rows = zip(best.tolist(), chosen.tolist(), scores.known_words.tolist(), strict=True)
        return [Prediction(self.classes[label], chance, known) for label, chance, known in rows]

    def predict_proba(self, texts: Texts) -> NDArray[np.float32]:
        """Compute the probability of each class.

        Args:
            texts: As for `predict`.

        Returns:
            An array of shape (texts, classes), in the order of `classes`.

        Raises:
            UsageError, RunError: As for `predict`.

        >>> tenor.load("run").predict_proba(["not bad at all"])  # doctest: +SKIP
        array([[0.17, 0.83]], dtype=float32)
        """
        return self.score(texts).probabilities

    def score(self, texts: Texts) -> TextScores:
        """Compute the probability of each class, and count the known words of each text.

        Args:
            texts: As for `predict`.

        Returns:
            `probabilities` (texts, classes) and `known_words` (texts,).

        Raises:
            UsageError, RunError: As for `predict`.

        >>> tenor.load("run").score(["not bad at all"]).known_words  # doctest: +SKIP
        array([4])
        """
        found = self._in_threads(as_texts(texts), self._score_chunk)
        if not found:
            return TextScores(np.empty((0, len(self.classes)), np.float32), np.empty(0, np.int64))
        probabilities, known = zip(*found, strict=True)
        return TextScores(np.concatenate(probabilities), np.concatenate(known))

    @overload
    def explain(self, text: str, label: str | None = None, *, ngrams: bool = False) -> list[ExplainedPiece]: ...

    @overload
    def explain(self, text: Texts, label: str | None = None, *, ngrams: bool = False) -> list[list[ExplainedPiece]]: ...

    def explain(
        self, text: Texts, label: str | None = None, *, ngrams: bool = False
    ) -> list[ExplainedPiece] | list[list[ExplainedPiece]]:
        """Say what each word of a text adds to the decision.

        Args:
            text: One text, or several as for `predict`.
            label: The class whose logit is explained. Default: the second of two classes, such as `positive`; the most
                likely one of more classes.
            ngrams: Return the n-grams of the wide part and the words of the deep part, instead of words alone. An
                n-gram is listed at its first place.

        Returns:
            One piece per word, in the order of the text: (start, end, piece, contribution). Contributions above 0
            speak for the class. For several texts, a list with the pieces of each.

        Raises:
            UsageError: `text` is neither a string nor a list of strings, or the model has no such class.

        >>> tenor.load("run").explain("not bad at all")[0]  # doctest: +SKIP
        ExplainedPiece(start=0, end=3, piece='not', contribution=0.41)
        """
        if isinstance(text, str):
            return self._explain(text, label, ngrams)
        texts = as_texts(text)
        plain = texts if isinstance(texts, list) else texts.to_pylist()
        return [self._explain(one, label, ngrams) for one in plain]

    def _explain(self, text: str, label: str | None, ngrams: bool) -> list[ExplainedPiece]:
        with self._own_encoder() as encoder:
            tokens, lengths = encoder([text])
        if not len(tokens):
            return []
        spans = token_spans(text, self.encoder.settings)[: len(tokens)]
        goal = self._goal(label, tokens, lengths)
        if not ngrams:
            values = toward(word_values(self.parts, tokens), goal)
            return [_piece(text, span.start, span.end, value) for span, value in zip(spans, values, strict=True)]
        found = [
            _piece(
                text, spans[gram.places[0]].start, spans[gram.places[0] + gram.size - 1].end, toward(gram.values, goal)
            )
            for gram in wide_ngrams(self.parts, tokens)
        ]
        deep = toward(deep_values(self.parts, tokens), goal)
        found += [_piece(text, span.start, span.end, v) for span, v in zip(spans, deep, strict=True) if v]
        return sorted(found)

    def contributions(self, texts: Texts) -> TextNgrams:
        """Compute what each n-gram of the wide part adds to the logits, for many texts.

        Args:
            texts: As for `predict`.

        Returns:
            The n-grams of all texts. Each is listed once per text, at its first place. A model without a wide part has
            none.

        >>> found = tenor.load("run").contributions(["not bad at all"])  # doctest: +SKIP
        >>> [(found.phrase(i), found.values[i, 0]) for i in range(2)]  # doctest: +SKIP
        [('not', -0.41), ('not bad', 0.87)]
        """
        with self._own_encoder() as encoder:
            tokens, lengths = encoder(as_texts(texts))
        tokens, lengths = with_unknown(tokens, lengths)
        return TextNgrams(tokens, self.parts.contributions(tokens, lengths), self.encoder.vocabulary.words)

    def _goal(self, label: str | None, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> int:
        if label is None:
            return 1 if len(self.classes) == 2 else int(self.parts.probabilities(tokens, lengths)[0].argmax())
        if label not in self.classes:
            raise UsageError(f"the model has no class {label!r}", remedy=f"choose one of {', '.join(self.classes)}")
        return self.classes.index(label)

    def score_tokens(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """Compute the probability of each class from token ids.

        Args:
            tokens: The ids of all rows, one row after another.
            lengths: The number of ids of each row. A row without ids counts as one unknown word.

        Returns:
            An array of shape (rows, classes), in the order of `classes`.

        >>> model = tenor.load("run")  # doctest: +SKIP
        >>> tokens, lengths = model.encoder(["not bad at all", "dull"])  # doctest: +SKIP
        >>> model.score_tokens(tokens, lengths).shape  # doctest: +SKIP
        (2, 2)
        """
        ends = np.cumsum(lengths, dtype=np.int64)
        if not len(ends):
            return np.empty((0, len(self.classes)), np.float32)

        def score(rows: range) -> NDArray[np.float32]:
            first = int(ends[rows.start - 1]) if rows.start else 0
            return self.parts.probabilities(tokens[first : ends[rows.stop - 1]], lengths[rows.start : rows.stop])

        return np.concatenate(self._in_threads(range(len(lengths)), score))

    def probabilities(self, texts: Texts) -> NDArray[np.float32]:
        """Compute the probability of each class; another name of `predict_proba`.

        Args:
            texts: As for `predict`.

        Returns:
            An array of shape (texts, classes), in the order of `classes`.

        >>> tenor.load("run").probabilities(["not bad at all"])  # doctest: +SKIP
        array([[0.17, 0.83]], dtype=float32)
        """
        return self.predict_proba(texts)

    def _score_chunk(self, texts: Sequence[str] | pa.Array) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        with self._own_encoder() as encoder:
            tokens, lengths = encoder(texts)
        return self.parts.probabilities(tokens, lengths), count_known(tokens, lengths)

    def _in_threads(self, rows: Any, work: Callable[[Any], T]) -> list[T]:
        """Do the work for chunks of the rows; the results in order. Few rows need no other thread."""
        chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
        if self.threads == 1 or len(chunks) <= 1:
            return [work(chunk) for chunk in chunks]
        with ThreadPoolExecutor(min(self.threads, len(chunks))) as pool:
            return list(pool.map(work, chunks))

    @contextmanager
    def _own_encoder(self) -> Iterator[Encoder]:
        """An encoder that no other thread uses meanwhile."""
        try:
            encoder = self._idle.get_nowait()
        except queue.Empty:
            encoder = self.encoder.fresh()
        yield encoder
        self._idle.put(encoder)


def _piece(text: str, start: int, end: int, contribution: Any) -> ExplainedPiece:
    return ExplainedPiece(start, end, text[start:end], float(contribution))


def count_known(tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of known words in each row."""
    sums = np.concatenate([[0], np.cumsum(tokens >= FIRST_WORD)])
    ends = np.cumsum(lengths, dtype=np.int64)
    known: NDArray[np.int64] = sums[ends] - sums[ends - lengths]
    return known


def load(run: str | Path) -> SentimentModel:
    """Load the model of a run folder, or a compact model.

    Args:
        run: A folder made by `tenor train`, or a file made by `tenor export --format compact`.

    Returns:
        The model, ready to predict.

    Raises:
        RunError: Something in the folder or file is missing, damaged or not allowed.

    >>> model = tenor.load("run")  # doctest: +SKIP
    >>> model.classes  # doctest: +SKIP
    ('negative', 'positive')
    """
    return SentimentModel(read_model(Path(run)))
