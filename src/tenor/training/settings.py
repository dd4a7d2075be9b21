"""How to train: every field is an option of `tenor train`, a TOML key and a Python argument."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tenor.errors import UsageError
from tenor.settings import check, setting
from tenor.training.balance_mode import parse_mode
from tenor.training.slowdown import parse_slowdown


@dataclass(frozen=True)
class TrainSettings:
    task: str = setting("reviews", "What is learned; points needs no data.", ("reviews", "points"))
    cell: str = setting("lstm", "Recurrent cell; qrnn is light and fast.", ("lstm", "gru", "rnn", "qrnn"))
    embedding_dim: int = setting(100, "Width of the word vectors.")
    hidden: int = setting(128, "Width of the recurrent state, per direction.")
    layers: int = setting(1, "Recurrent layers.")
    bidirectional: bool = setting(False, "Read each review backwards as well.")
    pooling: str = setting("max-mean", "How states over time become one vector.", ("max", "mean", "last", "max-mean"))
    dropout: float = setting(0.3, "Share of features dropped, one mask a sample and layer.")
    embeddings: str | None = setting(None, "Start from these word vectors: word2vec text format, plain or gz.")
    word_dropout: float = setting(0.0, "Share of words replaced by the unknown word.")

    epochs: int = setting(3, "Passes over the training rows.")
    batch_size: int = setting(64, "The global batch: rows in one step, over all workers.")
    accumulate: int = setting(0, "Micro-batches of each worker's part of a batch; 0: 1, with model parallelism more.")
    optimizer: str = setting("adam", "Update rule.", ("adam", "sgd", "adagrad"))
    lr: float = setting(2e-3, "Peak learning rate, chosen for --reference-batch where that is given.")
    momentum: float = setting(0.9, "Momentum of sgd.")
    weight_decay: float = setting(0.0, "Weight decay.")
    clip: float = setting(1.0, "Largest norm of the global gradient; 0 for none.")
    decay: str = setting("linear", "How the rate falls after warm-up.", ("linear", "cosine", "none"))
    warmup_epochs: float = setting(0.25, "Epochs over which the rate rises.")
    reference_batch: int = setting(0, "The batch the rate was chosen for; 0: this one.")
    scaling: str = setting("sqrt", "How the rate grows with the batch.", ("linear", "sqrt", "capped", "none"))
    loss: str = setting("auto", "What is minimised.", ("auto", "bce", "cross-entropy", "mse", "focal"))
    class_weights: str = setting("none", "auto (balanced), none, or one number a class: 1.5,1.")
    precision: str = setting("fp32", "Arithmetic.", ("fp32", "fp64", "bf16"))
    patience: int = setting(
        0, "Stop after so many epochs without better validation (AUC; accuracy for many classes); 0: never."
    )
    test: bool = setting(True, "Measure the kept weights on the test rows at the end.")
    keep: str = setting("best", "Which weights the run keeps.", ("best", "last"))

    stage: str | None = setting(None, "Copy the data into this local folder first, once a host, verified.")
    workers: str = setting("auto", "Worker processes on this machine; auto: one a core.")
    threads: int = setting(0, "Threads a worker; 0: the cores divided among the workers.")
    strategy: str = setting(
        "auto",
        "How workers agree.",
        ("auto", "single", "allreduce", "local-sgd", "diloco", "hogwild", "async", "model-parallel", "hybrid"),
    )
    model_parallel: int = setting(2, "Workers that share one model.", owners=("hybrid",))
    sync_every: int = setting(16, "Steps that workers make apart.", owners=("local-sgd", "diloco", "hogwild"))
    outer_lr: float = setting(0.7, "Rate of the outer step.", owners=("diloco",))
    outer_momentum: float = setting(0.9, "Momentum of the outer step.", owners=("diloco",))
    staleness: str = setting("4", "Updates that gradients may be late; 0: in step, inf: any number.", owners=("async",))
    stale_rate: bool = setting(False, "Divide the rate by the updates that a gradient is behind.", owners=("async",))
    delay_compensation: float = setting(
        0.0, "How far late gradients are corrected (DC-ASGD's λ); 0: not.", owners=("async",)
    )
    async_data: str = setting(
        "shard",
        "Whether workers take their own parts of batches in order, or any.",
        ("shard", "random"),
        owners=("async",),
    )
    max_replacements: int = setting(20, "How many killed workers may be replaced.", owners=("async",))
    compress: str = setting(
        "none", "How gradients travel.", ("none", "fp16", "bf16", "top-k"), owners=("allreduce", "async")
    )
    top_k: float = setting(0.01, "Share of the numbers that top-k sends.")
    device: str = setting("auto", "What a worker computes on.", ("auto", "cpu", "cuda"))
    backend: str = setting("auto", "What carries their messages.", ("auto", "memory", "gloo", "nccl", "mpi"))
    shares: str = setting("", "Fixed shares of the work, one a worker, such as 5:2:1; empty: equal.")
    balance: str = setting("off", "When shares follow the workers' speeds: off, epoch, or steps:N.")
    token_caps: str = setting("", "Most padded tokens of a worker in a batch: one number, or one a worker, 9000:4000.")
    slowdown: str = setting("", "Emulate slow workers, rank:factor@first-last, such as 1:3@200-600 or 1:3.")
    timeout: float = setting(1800.0, "Seconds before a silent worker counts as lost.")

    checkpoint_steps: int = setting(500, "Steps between checkpoints; one is also saved after each epoch.")
    keep_checkpoints: int = setting(2, "Checkpoints kept.")
    resume: bool = setting(False, "Go on from the newest valid checkpoint in --out.")
    max_restarts: int = setting(0, "How often a lost worker may restart the run from its last checkpoint.")
    max_seconds: float = setting(0.0, "End training after so many seconds; 0: by epochs alone.")
    max_steps: int = setting(0, "End training after so many steps; 0: by epochs alone.")
    tensorboard: bool = setting(False, "Also write events for TensorBoard into the run folder.")
    seed: int = setting(0, "Fixes weights, order and masks.")

    def __post_init__(self) -> None:
        check(self)
        positive = (
            "embedding_dim",
            "hidden",
            "layers",
            "epochs",
            "batch_size",
            "lr",
            "keep_checkpoints",
            "checkpoint_steps",
            "timeout",
            "sync_every",
            "outer_lr",
            "model_parallel",
        )
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise _wrong(name, getattr(self, name), "give a number above 0")
        not_negative = (
            "accumulate",
            "weight_decay",
            "clip",
            "warmup_epochs",
            "reference_batch",
            "patience",
            "threads",
            "max_restarts",
            "max_seconds",
            "max_steps",
            "delay_compensation",
            "max_replacements",
            "seed",
        )
        for name in not_negative:
            if not 0 <= getattr(self, name) < math.inf:
                raise _wrong(name, getattr(self, name), "give 0 or a positive number")
        for name in ("dropout", "word_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise _wrong(name, getattr(self, name), "give a share from 0 up to, not including, 1")
        if not 0.0 < self.top_k <= 1.0:
            raise _wrong("top_k", self.top_k, "give a share above 0, up to 1")
        if self.staleness != "inf" and not self.staleness.isdecimal():
            raise _wrong("staleness", self.staleness, "give 0, a whole number, or inf")
        self._refuse_what_does_nothing()
        parse_mode(self.balance)
        parse_slowdown(self.slowdown)
        if self.workers != "auto" and not (self.workers.isdecimal() and int(self.workers) > 0):
            raise _wrong("workers", self.workers, "give 'auto' or a number above 0")

    def _refuse_what_does_nothing(self) -> None:
        for name, other, value in (("momentum", "optimizer", "sgd"), ("top_k", "compress", "top-k")):
            if getattr(self, name) != _default(name) and getattr(self, other) != value:
                told = f"--{name.replace('_', '-')} {getattr(self, name)} with --{other} {getattr(self, other)}"
                raise UsageError(told, remedy=f"use --{other} {value}, or leave it away")
        if self.patience and self.keep == "last":
            raise UsageError("--patience with --keep last", remedy="use --keep best, or leave --patience away")


def _default(name: str) -> object:
    return next(field.default for field in fields(TrainSettings) if field.name == name)


def _wrong(name: str, value: object, remedy: str) -> UsageError:
    return UsageError(f"--{name.replace('_', '-')} cannot be {value}", remedy=remedy)
