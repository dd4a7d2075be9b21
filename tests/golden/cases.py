"""The preparations and trainings of the golden test. All of them are tiny."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# name → (inputs, fields of PrepareSettings); every path is relative to the folder of the inputs
PREPARE: dict[str, tuple[list[str], dict[str, Any]]] = {
    "jsonl": (["reviews.jsonl"], {}),
    "jsonl.gz": (["reviews.jsonl.gz"], {}),
    "jsonl.bz2": (["reviews.jsonl.bz2"], {}),
    "json array": (["reviews.json"], {}),
    "csv": (["reviews.csv"], {}),
    "csv with semicolons in cp1252": (["latin.csv"], {"encoding": "cp1252"}),
    "tsv": (["reviews.tsv"], {}),
    "fasttext": (["reviews.ft.txt"], {}),
    "parquet": (["reviews.parquet"], {}),
    "zip": (["reviews.zip"], {}),
    "glob": (["many/*"], {}),
    "folder, 2 workers": (["many"], {"workers": 2}),
    "parquet, 2 workers": (["reviews.parquet"], {"workers": 2}),
    "broken lines": (["broken.jsonl"], {"max_rejects": 0.1}),
    "stopwords english": (["reviews.jsonl"], {"stopwords": "english"}),
    "stopwords file": (["reviews.jsonl"], {"stopwords": "stopwords.txt"}),
    "no dedupe": (["reviews.jsonl"], {"dedupe": False}),
    "labels stars": (["reviews.jsonl"], {"labels": "stars"}),
    "labels words": (["words.csv"], {"negative": "neg", "positive": "pos,so-so"}),
    "other labels": (["reviews.jsonl"], {"negative": "1", "positive": "5"}),
    "title column": (["reviews.csv"], {"title_column": "title"}),
    "text column": (["reviews.csv"], {"text_column": "title", "label_column": "rating"}),
    "letters without marks": (["reviews.jsonl"], {"clean": "letters", "marks": False}),
    "small": (["reviews.jsonl"], {"vocab_size": 40, "max_length": 9}),
    "other splits": (["reviews.jsonl"], {"valid_share": 0.3, "test_share": 0.2, "split_seed": 5}),
    "borrowed vocabulary": (["many/b.csv"], {"vocab": "prepared/small"}),
    # the data of the trainings
    "training": (["training.jsonl"], {}),
    "training stars": (["training.jsonl"], {"labels": "stars"}),
}

BASE: dict[str, Any] = {
    "threads": 1,
    "characters": 0,
    "cell": "lstm",
    "bidirectional": False,
    "embeddings": "none",  # learned vectors depend on the processor
    "hidden": 8,
    "embedding_dim": 8,
    "batch_size": 32,
    "epochs": 2,
    "dropout": 0.2,
    "input_dropout": 0.2,
    "word_dropout": 0.1,
    "clip": 0.1,  # gradients are longer than that in most steps
    "timeout": 120.0,
}
POINTS: dict[str, Any] = {
    "task": "points",
    "threads": 1,
    "hidden": 8,
    "batch_size": 256,
    "max_steps": 12,
    "lr": 0.01,
    "timeout": 120.0,
}


@dataclass(frozen=True)
class Case:
    """A training run with `workers` that compute; `async` has a server beside them."""

    name: str
    workers: int = 1
    changes: dict[str, Any] = field(default_factory=dict)
    data: str = "training"
    stop_after: int = 0  # send a signal in this step and resume the run; 0: no stop
    is_repeatable: bool = True  # whether two runs give the same weights

    @property
    def settings(self) -> dict[str, Any]:
        """Fields of TrainSettings."""
        return {**(POINTS if self.data == "points" else BASE), "workers": str(self.workers), **self.changes}

    @property
    def processes(self) -> int:
        return self.workers + (self.changes.get("strategy") == "async" and self.workers > 1)

    @property
    def source(self) -> str:
        return "points" if self.data == "points" else f"prepared/{self.data}"

    @property
    def folder(self) -> str:
        return self.name.replace(" ", "_").replace(":", "-").replace(",", "")


SGD = {"optimizer": "sgd", "lr": 0.1}
TWO_LAYERS = {"layers": 2}
AUTO_WEIGHTS = {"class_weights": "auto"}

TRAIN = (
    # models and settings, one worker
    Case("lstm"),
    Case("deep", 1, {"model": "deep"}),
    Case("wide", 1, {"model": "wide"}),
    Case("wide, 2 workers", 2, {"model": "wide"}),
    Case("wide, n-grams of 2 tokens, few buckets", 1, {"model": "wide", "ngrams": 2, "ngram_bits": 8}),
    Case("conv", 1, {"cell": "conv", "pooling": "max"}),
    Case("conv, max and mean", 1, {"cell": "conv"}),
    Case("gru", 1, {"cell": "gru"}),
    Case("rnn", 1, {"cell": "rnn"}),
    Case("qrnn", 1, {"cell": "qrnn"}),
    Case("lstm, 2 layers, both directions", 1, {"layers": 2, "bidirectional": True}),
    Case("qrnn, 2 layers, both directions", 1, {"cell": "qrnn", "layers": 2, "bidirectional": True}),
    Case("pooling max", 1, {"pooling": "max"}),
    Case("pooling mean", 1, {"pooling": "mean"}),
    Case("pooling last", 1, {"pooling": "last"}),
    Case("word vectors", 1, {"embeddings": "vectors.txt"}),
    Case("sgd", 1, {**SGD, "weight_decay": 0.01}),
    Case("adagrad", 1, {"optimizer": "adagrad", "lr": 0.05}),
    Case("adam with weight decay, no clipping", 1, {"weight_decay": 0.1, "clip": 0.0}),
    Case("cosine decay, scaled rate", 1, {"decay": "cosine", "reference_batch": 16, "scaling": "linear"}),
    Case("class weights auto", 1, AUTO_WEIGHTS),
    Case("class weights given", 1, {"class_weights": "1.5,1"}),
    Case("loss mse", 1, {"loss": "mse"}),
    Case("loss focal", 1, {"loss": "focal"}),
    Case("fp64", 1, {"precision": "fp64"}),
    Case("accumulate", 1, {"accumulate": 3}),
    Case("patience", 1, {"patience": 1, "epochs": 4, "lr": 0.05}),
    Case("keep last", 1, {"keep": "last", "seed": 7}),
    Case("stars", 1, {}, "training stars"),
    Case("stars, class weights, cross-entropy", 1, {**AUTO_WEIGHTS, "loss": "cross-entropy"}, "training stars"),
    Case("stopped and resumed", 1, {"checkpoint_steps": 3}, stop_after=7),
    Case("points", 1, {}, "points"),
    # strategies
    Case("hogwild, 1 worker", 1, {"strategy": "hogwild", "sync_every": 4}),
    Case("async, 1 worker", 1, {"strategy": "async"}),
    Case("local-sgd, 1 worker", 1, {"strategy": "local-sgd", "sync_every": 4}),
    Case("diloco, 1 worker", 1, {"strategy": "diloco", "sync_every": 4}),
    Case("allreduce", 2, {"strategy": "allreduce"}),
    Case("allreduce over gloo", 2, {"strategy": "allreduce", "backend": "gloo"}),
    Case("allreduce, qrnn, class weights", 2, {"strategy": "allreduce", "cell": "qrnn", **AUTO_WEIGHTS}),
    Case("allreduce, shares 3:1", 2, {"strategy": "allreduce", "shares": "3:1"}),
    Case("allreduce, token caps", 2, {"strategy": "allreduce", "token_caps": "1000:350"}),
    # shares change at the end of the only epoch, so the speeds of the workers change nothing
    Case("allreduce, shares 3:1, balance", 2, {"shares": "3:1", "balance": "epoch", "epochs": 1}),
    Case("allreduce, fp16", 2, {"strategy": "allreduce", "compress": "fp16"}),
    Case("allreduce, bf16", 2, {"strategy": "allreduce", "compress": "bf16"}),
    Case("allreduce, top-k", 2, {"strategy": "allreduce", "compress": "top-k", "top_k": 0.05, **SGD}),
    Case("allreduce, stopped and resumed", 2, {"checkpoint_steps": 3}, stop_after=7),
    Case("local-sgd", 2, {"strategy": "local-sgd", "sync_every": 4}),
    Case("local-sgd, shares, class weights", 2, {"strategy": "local-sgd", "shares": "3:1", **AUTO_WEIGHTS, **SGD}),
    Case("local-sgd, stopped and resumed", 2, {"strategy": "local-sgd", "sync_every": 3}, stop_after=7),
    Case("diloco", 2, {"strategy": "diloco", "sync_every": 4, "outer_lr": 0.5, "weight_decay": 0.01}),
    Case("diloco, stopped and resumed", 2, {"strategy": "diloco", "sync_every": 3}, stop_after=7),
    Case("model-parallel", 2, {"strategy": "model-parallel"}),
    Case("points, allreduce", 2, {"strategy": "allreduce"}, "points"),
    Case("points, local-sgd", 2, {"strategy": "local-sgd", "sync_every": 4}, "points"),
    Case("points, diloco", 2, {"strategy": "diloco", "sync_every": 4}, "points"),
    Case("points, model-parallel", 2, {"strategy": "model-parallel"}, "points"),
    Case("async, staleness 0", 2, {"strategy": "async", "staleness": "0"}),
    Case("async, staleness 0, fp16", 2, {"strategy": "async", "staleness": "0", "compress": "fp16", **AUTO_WEIGHTS}),
    Case("async, staleness 4", 2, {"strategy": "async", "staleness": "4"}, is_repeatable=False),
    Case("hogwild", 2, {"strategy": "hogwild", "sync_every": 4}, is_repeatable=False),
    Case("points, async, staleness 0", 2, {"strategy": "async", "staleness": "0"}, "points"),
    Case("allreduce, 3 workers, shares 5:2:1", 3, {"shares": "5:2:1"}),
    Case("model-parallel, 3 workers", 3, {"strategy": "model-parallel", **TWO_LAYERS}),
    Case("hybrid", 4, {"strategy": "hybrid"}),
    Case("hybrid, shares 3:1", 4, {"strategy": "hybrid", "shares": "3:1"}),
    Case("points, hybrid", 4, {"strategy": "hybrid"}, "points"),
)
