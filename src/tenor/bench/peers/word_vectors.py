"""Other trainers of word vectors, each run as `python -m tenor.bench.peers.word_vectors NAME TEXT OUT SETTINGS`.

SETTINGS is a JSON object with dim, window, negative, sample, lr, epochs, workers and seed. The vectors go to OUT in the
binary or text format of word2vec; standard output gets one JSON object with words_per_s.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SENTENCE = 1000  # words of a line that gensim is given
_NO_NGRAMS = 1000  # characters: no word is as long, so none has n-grams


def main() -> None:
    name, text, out, settings = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4])
    seconds, words = {"gensim": _gensim, "fasttext": _fasttext}[name](text, out, settings)
    print(json.dumps({"words_per_s": words * settings["epochs"] / seconds}))


def _gensim(text: Path, out: Path, settings: dict[str, Any]) -> tuple[float, int]:
    """The skip-gram of gensim. It reads lines from a file: its workers share an iterator less well."""
    from gensim.models import Word2Vec

    words = text.read_text("utf-8").split()
    same = {name: settings[name] for name in ("window", "negative", "sample", "epochs", "workers", "seed")}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as lines:
        for start in range(0, len(words), SENTENCE):
            lines.write(" ".join(words[start : start + SENTENCE]) + "\n")
        lines.flush()
        model = Word2Vec(vector_size=settings["dim"], alpha=settings["lr"], sg=1, min_count=5, **same)
        model.build_vocab(corpus_file=lines.name)
        told = {"total_examples": model.corpus_count, "total_words": len(words), "epochs": settings["epochs"]}
        began = time.perf_counter()
        model.train(corpus_file=lines.name, **told)
        seconds = time.perf_counter() - began
    model.wv.save_word2vec_format(str(out), binary=True)
    return seconds, len(words)


def _fasttext(text: Path, out: Path, settings: dict[str, Any]) -> tuple[float, int]:
    """The skip-gram of fastText without subwords. Its time includes counting the words, which it does not report.

    Its memory includes the rows of n-grams, which it takes although no word has n-grams.
    """
    import fasttext

    began = time.perf_counter()
    model = fasttext.train_unsupervised(
        str(text),
        model="skipgram",
        dim=settings["dim"],
        ws=settings["window"],
        neg=settings["negative"],
        t=settings["sample"],
        epoch=settings["epochs"],
        thread=settings["workers"],
        lr=settings["lr"],
        minn=_NO_NGRAMS,  # with 0, which also means none, the wheel stops with "Encountered NaN" on many runs
        maxn=_NO_NGRAMS,
        minCount=5,
        verbose=0,
    )
    seconds = time.perf_counter() - began
    words = model.get_words()
    with out.open("w", encoding="utf-8") as file:
        file.write(f"{len(words)} {settings['dim']}\n")
        for word in words:
            file.write(word + " " + " ".join(f"{value:.6g}" for value in model.get_word_vector(word)) + "\n")
    return seconds, len(text.read_text("utf-8").split())


if __name__ == "__main__":
    main()
