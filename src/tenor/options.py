"""The settings as types of keywords, for editors and type checkers. `make docs` writes this file."""

from __future__ import annotations

from typing import TypedDict


class DriftOptions(TypedDict, total=False):
    """The fields of `tenor.DriftSettings`, where each is explained."""

    text_column: str | None
    title_column: str | None
    format: str
    delimiter: str
    encoding: str
    label_column: str | None
    negative: str | None
    positive: str | None
    labels: str | None
    max_rejects: float
    reference: str | None
    rows: int
    effect: float
    seed: int


class EmbedOptions(TypedDict, total=False):
    """The fields of `tenor.EmbedSettings`, where each is explained."""

    model: str
    dim: int
    window: int
    negative: int
    subwords: bool
    min_chars: int
    max_chars: int
    buckets: int
    sample: float
    min_count: int
    max_words: int
    epochs: int
    lr: float
    workers: int | str
    seed: int
    average_words: int
    backend: str
    timeout: float
    checkpoint_seconds: float
    resume: bool


class EvaluateOptions(TypedDict, total=False):
    """The fields of `tenor.EvaluateSettings`, where each is explained."""

    text_column: str | None
    title_column: str | None
    format: str
    delimiter: str
    encoding: str
    label_column: str | None
    split: str
    labels: str | None
    negative: str | None
    positive: str | None
    abstain_below: float
    max_rejects: float
    workers: int | str
    threads: int


class GenerateOptions(TypedDict, total=False):
    """The fields of `tenor.GenerateSettings`, where each is explained."""

    rows: int
    seed: int
    duplicates: float
    noise: float
    negative_share: float
    length: float
    contrast: float


class InsightsOptions(TypedDict, total=False):
    """The fields of `tenor.InsightsSettings`, where each is explained."""

    text_column: str | None
    title_column: str | None
    format: str
    delimiter: str
    encoding: str
    label_column: str | None
    negative: str | None
    positive: str | None
    labels: str | None
    max_rejects: float
    engine: str
    workers: int | str
    cluster: str | None
    dask_report: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    by: str | None
    time: str | None
    period: str
    phrases: int
    suspects: float
    similarity: float
    threads: int


class PredictOptions(TypedDict, total=False):
    """The fields of `tenor.PredictSettings`, where each is explained."""

    text_column: str | None
    title_column: str | None
    format: str
    delimiter: str
    encoding: str
    engine: str
    workers: int | str
    cluster: str | None
    dask_report: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    threads: int
    output_format: str
    keep_columns: bool
    id_column: str | None
    line_numbers: bool
    probabilities: bool
    abstain_below: float
    explain: bool
    max_rejects: float


class PrepareOptions(TypedDict, total=False):
    """The fields of `tenor.PrepareSettings`, where each is explained."""

    text_column: str | None
    title_column: str | None
    format: str
    delimiter: str
    encoding: str
    label_column: str | None
    engine: str
    workers: int | str
    cluster: str | None
    dask_report: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    labels: str
    negative: str
    positive: str
    unlabelled: bool
    clean: str
    tokens: str
    stopwords: str | None
    marks: bool
    negation: bool
    vocab_size: int
    vocab: str | None
    max_length: int
    dedupe: bool
    valid_share: float
    test_share: float
    split_seed: int
    max_rejects: float


class ReportOptions(TypedDict, total=False):
    """The fields of `tenor.ReportSettings`, where each is explained."""

    price: float


class RunsOptions(TypedDict, total=False):
    """The fields of `tenor.RunsSettings`, where each is explained."""

    where: str
    sort: str
    limit: int
    compare: bool
    data: str | None
    split: str
    flips: int


class TrainOptions(TypedDict, total=False):
    """The fields of `tenor.TrainSettings`, where each is explained."""

    preset: str
    task: str
    from_run: str | None
    model: str
    ngrams: int
    characters: int
    ngram_bits: int
    wide_lr: float
    deep_length: int
    cell: str
    embedding_dim: int
    hidden: int
    layers: int
    window: int
    bidirectional: bool
    pooling: str
    dropout: float
    input_dropout: float
    embeddings: str
    vector_epochs: int
    freeze_embeddings: int
    word_dropout: float
    negation_rows: float
    epochs: int
    batch_size: int
    accumulate: int
    optimizer: str
    lr: float
    momentum: float
    weight_decay: float
    clip: float
    decay: str
    warmup_epochs: float
    reference_batch: int
    scaling: str
    loss: str
    label_smoothing: float
    class_weights: str
    optimise: str
    precision: str
    patience: int
    test: bool
    keep: str
    all_rows: bool
    stage: str | None
    workers: int | str
    threads: int
    strategy: str
    model_parallel: int
    sync_every: int
    outer_lr: float
    outer_momentum: float
    staleness: int | str
    stale_rate: bool
    delay_compensation: float
    async_data: str
    max_replacements: int
    compress: str
    top_k: float
    device: str
    backend: str
    shares: str
    balance: str
    token_caps: int | str
    slowdown: str
    timeout: float
    checkpoint_steps: int
    keep_checkpoints: int
    resume: bool
    max_restarts: int
    max_seconds: float
    max_steps: int
    profile: bool
    tensorboard: bool
    seed: int
