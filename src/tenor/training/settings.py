"""The settings of `tenor train` and `tenor.train`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tenor.errors import UsageError
from tenor.evaluation.goal import Goal
from tenor.models.deep.cells import CELLS
from tenor.models.limits import MAX_BITS, MAX_CHARACTERS, MAX_LAYERS, MAX_NGRAM, MAX_WIDTH, MAX_WINDOW, MIN_BITS
from tenor.settings import AUTO_WORKERS, CHOSEN, Settings, parse_workers, setting, wrong_value
from tenor.training.balancing.mode import parse_mode
from tenor.training.balancing.slowdown import parse_slowdown
from tenor.training.traits import STRATEGIES, TASKS, owners_of

# Headings of `tenor train --help`
OUTPUT, DATA, MODEL, OPTIMISATION = "Output", "Data", "Model", "Optimisation"
WORKERS, ASYNC, BALANCING = "Workers and strategy", "Strategy async", "Balancing"
STOPPING = "Checkpoints and stopping"

OWN_VECTORS, NO_VECTORS = "auto", "none"  # values of `embeddings` that are not paths

_ABOVE_ZERO = {
    "ngrams",
    "wide_lr",
    "deep_length",
    "embedding_dim",
    "hidden",
    "layers",
    "window",
    "vector_epochs",
    "epochs",
    "batch_size",
    "lr",
    "keep_checkpoints",
    "checkpoint_steps",
    "timeout",
    "sync_every",
    "outer_lr",
    "model_parallel",
}
_NOT_NEGATIVE = {
    "characters",
    "ngram_bits",
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
    "negation_rows",
    "max_replacements",
    "freeze_embeddings",
    "seed",
}
_AT_MOST = {
    "ngrams": MAX_NGRAM,
    "characters": MAX_CHARACTERS,
    "ngram_bits": MAX_BITS,
    "hidden": MAX_WIDTH,
    "embedding_dim": MAX_WIDTH,
    "layers": MAX_LAYERS,
    "window": MAX_WINDOW,
    "seed": (1 << 63) - 1,
}


@dataclass(frozen=True)
class TrainSettings(Settings):
    """How a model is trained. Each field is an option of `tenor train` and a key of its TOML file.

    >>> TrainSettings(cell="gru", epochs=5, workers=2).workers
    2
    """

    preset: str = setting(
        CHOSEN,
        "Settings for the options that you omit: a linear model in seconds (fast), a model for most purposes "
        "(default), or a larger one in up to half an hour (best). --max-seconds chooses among them.",
        ("fast", "default", "best"),
        group=MODEL,
    )
    task: str = setting(
        "reviews",
        "What to learn. points generates its own data; words learns word vectors from text.",
        tuple(TASKS),
        group=DATA,
    )
    from_run: str | None = setting(
        None,
        "Fine-tune this finished run: start from its weights and keep its architecture. DATA must have been prepared "
        "with --vocab RUN.",
        group=MODEL,
    )
    model: str = setting(
        CHOSEN,
        "Parts of the model: n-grams (wide), a convolution or recurrent network over word vectors (deep), or both.",
        ("wide", "deep", "wide-deep"),
        group=MODEL,
    )
    ngrams: int = setting(CHOSEN, "Wide part: tokens of the longest n-gram.", group=MODEL)
    characters: int = setting(
        CHOSEN,
        "Wide part: characters of the longest n-gram within a word, which helps with few reviews and with rare forms "
        "of words; 0 for none.",
        group=MODEL,
    )
    ngram_bits: int = setting(
        0,
        "Wide part: the table has 2^N rows, which n-grams share by their hash; 0 chooses N by the size of the data.",
        group=MODEL,
    )
    wide_lr: float = setting(CHOSEN, "Wide part: peak learning rate, of Adagrad.", group=OPTIMISATION)
    deep_length: int = setting(
        400, "Deep part: maximum words per review; of longer reviews it reads the beginning and the end.", group=MODEL
    )
    cell: str = setting(CHOSEN, "Deep part: conv, or a recurrent cell.", tuple(CELLS), group=MODEL)
    embedding_dim: int = setting(CHOSEN, "Width of the word vectors.", group=MODEL)
    hidden: int = setting(CHOSEN, "Deep part: width of a layer, per direction.", group=MODEL)
    layers: int = setting(CHOSEN, "Deep part: number of layers.", group=MODEL)
    window: int = setting(CHOSEN, "With --cell conv: neighbouring words that each output reads.", group=MODEL)
    bidirectional: bool = setting(CHOSEN, "Also read each review backwards.", group=MODEL)
    pooling: str = setting(
        CHOSEN,
        "How the outputs of the last layer at all words become one vector.",
        ("max", "mean", "last", "max-mean"),
        group=MODEL,
    )
    dropout: float = setting(
        CHOSEN, "Dropout rate of the outputs of each layer, with one mask per sample.", group=MODEL
    )
    input_dropout: float = setting(CHOSEN, "Dropout rate of the word vectors, with one mask per sample.", group=MODEL)
    embeddings: str = setting(
        CHOSEN,
        "Start the deep part from word vectors: a folder made by `tenor embed`, a file in word2vec's or fastText's "
        "format, auto to learn them from the data first, or none for random ones.",
        group=MODEL,
    )
    vector_epochs: int = setting(
        CHOSEN, "Passes over the words when --embeddings auto learns their vectors.", group=MODEL
    )
    freeze_embeddings: int = setting(
        0, "Epochs at the start in which the word vectors of --embeddings stay fixed.", group=MODEL
    )
    word_dropout: float = setting(CHOSEN, "Share of the words replaced by the unknown word in training.", group=MODEL)
    negation_rows: float = setting(
        0.1,
        "Short rows that show what negation does to the words of the data, such as `not bad at all`: their number as a "
        "share of the training rows, 0 for none. Only for two classes, and where the data shows that negation matters.",
        group=DATA,
    )

    epochs: int = setting(CHOSEN, "Number of passes over the training rows.", group=OPTIMISATION)
    batch_size: int = setting(CHOSEN, "Global batch size: rows per step over all workers.", group=OPTIMISATION)
    accumulate: int = setting(
        0,
        "Micro-batches per step and worker. 0 means 1, or with model parallelism one per worker of a model.",
        group=OPTIMISATION,
    )
    optimizer: str = setting("adam", "Optimizer.", ("adam", "sgd", "adagrad"), group=OPTIMISATION)
    lr: float = setting(
        CHOSEN, "Peak learning rate. With --reference-batch: the rate for a batch of that size.", group=OPTIMISATION
    )
    momentum: float = setting(0.9, "Momentum. Only with --optimizer sgd.", group=OPTIMISATION)
    weight_decay: float = setting(0.0, "Weight decay.", group=OPTIMISATION)
    clip: float = setting(1.0, "Maximum norm of the global gradient; 0 turns clipping off.", group=OPTIMISATION)
    decay: str = setting(
        "linear", "How the learning rate falls after the warm-up.", ("linear", "cosine", "none"), group=OPTIMISATION
    )
    warmup_epochs: float = setting(
        0.25, "Length of the warm-up in epochs; the learning rate rises meanwhile.", group=OPTIMISATION
    )
    reference_batch: int = setting(
        0, "Batch size that --lr was chosen for; 0 means --batch-size. See --scaling.", group=OPTIMISATION
    )
    scaling: str = setting(
        "sqrt",
        "How the learning rate grows with --batch-size over --reference-batch.",
        ("linear", "sqrt", "capped", "none"),
        group=OPTIMISATION,
    )
    loss: str = setting(
        "auto",
        "Loss function. auto takes bce for two classes and cross-entropy for more.",
        ("auto", "bce", "cross-entropy", "mse", "focal"),
        group=OPTIMISATION,
    )
    label_smoothing: float = setting(
        CHOSEN,
        "Deep part: share of each label that is spread evenly over the classes; it makes the model less certain.",
        group=OPTIMISATION,
    )
    class_weights: str = setting(
        "none",
        "Class weights in the loss: none, auto (every class counts the same), or one number per class, such as 1.5,1.",
        group=OPTIMISATION,
    )
    optimise: str = setting(
        "",
        "Choose the decision threshold of two classes on the validation rows: for accuracy, f1-macro, or "
        "recall@precision=0.95 (the highest recall of positives with 95 % of them right). Default: 0.5.",
        group=OPTIMISATION,
    )
    precision: str = setting("fp32", "Number format for computing.", ("fp32", "fp64", "bf16"), group=OPTIMISATION)
    patience: int = setting(
        0,
        "Stop after this many epochs without a better validation score (AUC; accuracy for more than two classes); 0 "
        "never stops early.",
        group=STOPPING,
    )
    test: bool = setting(True, "Measure the final model on the test split.", group=OUTPUT)
    keep: str = setting(
        "best",
        "Keep the weights of the epoch with the best validation score, or the last.",
        ("best", "last"),
        group=OUTPUT,
    )

    all_rows: bool = setting(
        False,
        "Train twice: on the training rows, to fit and measure the model, and then on the rows of all splits, which "
        "gives the final weights. Takes twice as long.",
        group=DATA,
    )
    stage: str | None = setting(
        None, "First copy the data into this local folder, once per host, and verify the copy.", group=DATA
    )
    workers: int | str = setting(
        AUTO_WORKERS, "Number of worker processes on this machine, or auto for one per core.", group=WORKERS
    )
    threads: int = setting(0, "Threads per worker; 0 divides the cores among the workers.", group=WORKERS)
    strategy: str = setting(
        "auto",
        "How the workers combine their updates. auto takes single for one worker and allreduce for more.",
        ("auto", *STRATEGIES),
        group=WORKERS,
    )
    model_parallel: int = setting(
        2, "Number of workers that share one model.", owners=owners_of("model_parallel"), group=WORKERS
    )
    sync_every: int = setting(16, "Steps between two synchronisations.", owners=owners_of("sync_every"), group=WORKERS)
    outer_lr: float = setting(0.7, "Learning rate of the outer optimizer.", owners=owners_of("outer_lr"), group=WORKERS)
    outer_momentum: float = setting(
        0.9, "Momentum of the outer optimizer.", owners=owners_of("outer_momentum"), group=WORKERS
    )
    staleness: int | str = setting(
        "4",
        "Maximum gradient staleness in updates; 0 means synchronous, inf means unbounded.",
        owners=owners_of("staleness"),
        group=ASYNC,
    )
    stale_rate: bool = setting(
        False, "Divide the learning rate by the staleness of the gradient.", owners=owners_of("stale_rate"), group=ASYNC
    )
    delay_compensation: float = setting(
        0.0,
        "Strength λ of delay compensation (DC-ASGD); 0 turns it off.",
        owners=owners_of("delay_compensation"),
        group=ASYNC,
    )
    async_data: str = setting(
        "shard",
        "Parts of the batches a worker takes: preferably the same part of each batch in order (shard), or any part of "
        "batches in random order.",
        ("shard", "random"),
        owners=owners_of("async_data"),
        group=ASYNC,
    )
    max_replacements: int = setting(
        20, "Maximum number of killed workers that are replaced.", owners=owners_of("max_replacements"), group=ASYNC
    )
    compress: str = setting(
        "none",
        "Compression of the gradients that workers send.",
        ("none", "fp16", "bf16", "top-k"),
        owners=owners_of("compress"),
        group=WORKERS,
    )
    top_k: float = setting(0.01, "Share of the gradient values to send. Only with --compress top-k.", group=WORKERS)
    device: str = setting("auto", "Device that each worker computes on.", ("auto", "cpu", "cuda"), group=WORKERS)
    backend: str = setting(
        "auto",
        "Communication between the workers. memory is shared memory on one machine.",
        ("auto", "memory", "gloo", "nccl", "mpi"),
        group=WORKERS,
    )
    shares: str = setting("", "Share of the work per worker, such as 5:2:1. Default: equal shares.", group=BALANCING)
    balance: str = setting(
        "off",
        "Adapt the shares to the measured speeds of the workers: off, epoch (after each epoch), or steps:N (every N "
        "steps).",
        group=BALANCING,
    )
    token_caps: int | str = setting(
        "",
        "Maximum padded tokens per worker and batch: one number, or one per worker, such as 9000:4000. Default: none.",
        group=BALANCING,
    )
    slowdown: str = setting(
        "",
        "Emulate slow workers as WORKER:FACTOR, counted from 0. 1:3 makes the second worker three times slower, "
        "1:3@200-600 only from step 200 to 600.",
        group=BALANCING,
    )
    timeout: float = setting(
        1800.0, "Seconds of silence after which a worker counts as lost. The async server waits as long.", group=WORKERS
    )

    checkpoint_steps: int = setting(
        500, "Steps between two checkpoints. Each epoch also ends with a checkpoint.", group=STOPPING
    )
    keep_checkpoints: int = setting(2, "Number of checkpoints to keep.", group=STOPPING)
    resume: bool = setting(False, "Continue the run in --out from its newest valid checkpoint.", group=STOPPING)
    max_restarts: int = setting(
        0, "How often a run that loses a worker restarts from its last checkpoint.", group=STOPPING
    )
    max_seconds: float = setting(
        0.0,
        "Time limit. Unless you choose them, the preset follows the time, and the learning rate falls so that training "
        "ends in time. 0 for no limit.",
        group=STOPPING,
    )
    max_steps: int = setting(0, "Stop after this many steps; 0 for no limit.", group=STOPPING)
    profile: bool = setting(
        False,
        "Record where each step goes: trace.json for Perfetto (ui.perfetto.dev) or chrome://tracing, and a table.",
        group=OUTPUT,
    )
    tensorboard: bool = setting(False, "Also write TensorBoard events into the run folder.", group=OUTPUT)
    seed: int = setting(
        0, "Random seed for the initial weights, the order of the rows and dropout.", group=OPTIMISATION
    )

    def __post_init__(self) -> None:
        for name in ("staleness", "token_caps"):  # numbers are stored as words
            value = getattr(self, name)
            object.__setattr__(self, name, value if isinstance(value, bool) else str(value))
        super().__post_init__()
        self._check_numbers()
        if self.staleness != "inf" and not _is_number(self.staleness):
            raise wrong_value("staleness", self.staleness, "give a whole number of at least 0, or inf")
        self._refuse_without_effect()
        if self.optimise:
            Goal.parse(self.optimise)
        parse_mode(self.balance)
        parse_slowdown(self.slowdown)
        object.__setattr__(self, "workers", parse_workers(self.workers))

    def _check_numbers(self) -> None:
        values = {name: value for name, value in vars(self).items() if value is not CHOSEN}
        for name in values.keys() & _ABOVE_ZERO:
            if not 0 < values[name] < math.inf:
                raise wrong_value(name, values[name], "give a number above 0")
        for name in values.keys() & _NOT_NEGATIVE:
            if not 0 <= values[name] < math.inf:
                raise wrong_value(name, values[name], "give 0 or a positive number")
        for name in values.keys() & _AT_MOST:
            if values[name] > _AT_MOST[name]:
                raise wrong_value(name, values[name], f"give at most {_AT_MOST[name]:,}")
        if 0 < self.ngram_bits < MIN_BITS:
            raise wrong_value("ngram_bits", self.ngram_bits, f"give 0, or a number from {MIN_BITS} to {MAX_BITS}")
        for name in values.keys() & {"dropout", "input_dropout", "word_dropout", "label_smoothing"}:
            if not 0.0 <= values[name] < 1.0:
                raise wrong_value(name, values[name], "give a number from 0 to below 1")
        if not 0.0 < self.top_k <= 1.0:
            raise wrong_value("top_k", self.top_k, "give a number above 0, at most 1")

    def _refuse_without_effect(self) -> None:
        for name, other, value in (("momentum", "optimizer", "sgd"), ("top_k", "compress", "top-k")):
            if getattr(self, name) != _default(name) and getattr(self, other) != value:
                option = f"--{name.replace('_', '-')}"
                what = f"{option} {getattr(self, name)} has no effect with --{other} {getattr(self, other)}"
                raise UsageError(what, remedy=f"use --{other} {value}, or omit {option}")
        if self.from_run and self.embeddings not in (CHOSEN, NO_VECTORS):
            what = f"--embeddings {self.embeddings} has no effect with --from, which starts from the run's word vectors"
            raise UsageError(what, remedy="omit --embeddings")
        if self.from_run and not TASKS[self.task].reads_text:
            what = f"--from has no effect with --task {self.task}, which does not train on reviews"
            raise UsageError(what, remedy="omit --from, or omit --task")
        if self.patience and self.keep == "last":
            what = f"--patience {self.patience} contradicts --keep last"
            raise UsageError(what, remedy="use --keep best, or omit --patience")


def _default(name: str) -> object:
    return next(field.default for field in fields(TrainSettings) if field.name == name)


def _is_number(value: int | str) -> bool:
    text = str(value)
    return text.isascii() and text.isdecimal()
