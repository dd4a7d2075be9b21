"""Tenor turns raw reviews into a sentiment classifier, on a laptop or a cluster.

The functions follow the data through the stages:

    tenor.generate   write a synthetic review corpus
    tenor.prepare    raw reviews → prepared data
    tenor.train      prepared data → run folder
    tenor.evaluate   run folder and data → metrics
    tenor.load       run folder → model that predicts texts in memory
    tenor.predict    run folder and file of reviews → file of predictions
    tenor.find_insights  run folder and reviews → what customers say
    tenor.measure_drift  run folder and new reviews → whether they are like the training data
    tenor.export_model  run folder → ONNX file
    tenor.report     run folders and benchmark results → HTML page

    tenor.check_behaviour  run folder → which behaviour tests it passes

    tenor.list_runs     folders → summaries of the runs in them
    tenor.compare_runs  two run folders → what differs, and which is better

    tenor.embed         prepared data or text → word vectors
    tenor.load_vectors  folder or file → word vectors in memory
    tenor.neighbours    word vectors and words → the nearest words

Functions that are also commands take the options of the command as keywords, such as `epochs=3`, or a settings object
with all of them, such as `TrainSettings(epochs=3)`. A keyword overrides the object. All errors are TenorErrors.

Example:
    >>> import tenor
    >>> tenor.prepare("reviews.jsonl.gz", "data")  # doctest: +SKIP
    >>> tenor.train("data", "run", cell="gru", workers=2)  # doctest: +SKIP
    >>> tenor.load("run").predict(["not bad at all"])[0].label  # doctest: +SKIP
    'positive'
"""

# The public names are loaded on first use, so that `import tenor` and `tenor --help` stay fast.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tenor.corpus.synthetic.generate import GenerateResult, generate
    from tenor.corpus.synthetic.settings import GenerateSettings
    from tenor.embedding.embed import EmbedResult, embed
    from tenor.embedding.nearest import neighbours
    from tenor.embedding.settings import EmbedSettings
    from tenor.embedding.vectors import Vectors, load_vectors
    from tenor.errors import TenorError
    from tenor.evaluation.behaviour.judge import Behaviour, PassCount
    from tenor.evaluation.metrics import Evaluation, Metrics
    from tenor.insights.drift import Drift, measure_drift
    from tenor.insights.find import Insights, find_insights
    from tenor.insights.settings import DriftSettings, InsightsSettings
    from tenor.prediction.behaviour import check_behaviour
    from tenor.prediction.evaluate import evaluate
    from tenor.prediction.export import ExportResult, export_model
    from tenor.prediction.predict import predict
    from tenor.prediction.settings import EvaluateSettings, PredictSettings
    from tenor.preparation.job.prepare import prepare
    from tenor.preparation.job.result import PrepareResult
    from tenor.preparation.settings import PrepareSettings
    from tenor.reports.report import report
    from tenor.reports.runs.comparison import RunComparison, compare_runs
    from tenor.reports.runs.listing import RunSummary, list_runs
    from tenor.reports.settings import ReportSettings, RunsSettings
    from tenor.runtime.explain import ExplainedPiece
    from tenor.runtime.model import Prediction, SentimentModel, TextNgrams, TextScores, load
    from tenor.training.launching.launch import TrainResult, train
    from tenor.training.settings import TrainSettings

_HOMES = {
    "Behaviour": "tenor.evaluation.behaviour.judge",
    "Drift": "tenor.insights.drift",
    "DriftSettings": "tenor.insights.settings",
    "ExplainedPiece": "tenor.runtime.explain",
    "ExportResult": "tenor.prediction.export",
    "TextNgrams": "tenor.runtime.model",
    "TextScores": "tenor.runtime.model",
    "export_model": "tenor.prediction.export",
    "EmbedResult": "tenor.embedding.embed",
    "EmbedSettings": "tenor.embedding.settings",
    "EvaluateSettings": "tenor.prediction.settings",
    "Evaluation": "tenor.evaluation.metrics",
    "GenerateResult": "tenor.corpus.synthetic.generate",
    "GenerateSettings": "tenor.corpus.synthetic.settings",
    "Insights": "tenor.insights.find",
    "InsightsSettings": "tenor.insights.settings",
    "Metrics": "tenor.evaluation.metrics",
    "PassCount": "tenor.evaluation.behaviour.judge",
    "PredictSettings": "tenor.prediction.settings",
    "Prediction": "tenor.runtime.model",
    "PrepareResult": "tenor.preparation.job.result",
    "PrepareSettings": "tenor.preparation.settings",
    "ReportSettings": "tenor.reports.settings",
    "RunComparison": "tenor.reports.runs.comparison",
    "RunSummary": "tenor.reports.runs.listing",
    "RunsSettings": "tenor.reports.settings",
    "SentimentModel": "tenor.runtime.model",
    "TenorError": "tenor.errors",
    "TrainResult": "tenor.training.launching.launch",
    "TrainSettings": "tenor.training.settings",
    "Vectors": "tenor.embedding.vectors",
    "check_behaviour": "tenor.prediction.behaviour",
    "compare_runs": "tenor.reports.runs.comparison",
    "embed": "tenor.embedding.embed",
    "evaluate": "tenor.prediction.evaluate",
    "find_insights": "tenor.insights.find",
    "generate": "tenor.corpus.synthetic.generate",
    "list_runs": "tenor.reports.runs.listing",
    "load": "tenor.runtime.model",
    "load_vectors": "tenor.embedding.vectors",
    "measure_drift": "tenor.insights.drift",
    "neighbours": "tenor.embedding.nearest",
    "predict": "tenor.prediction.predict",
    "prepare": "tenor.preparation.job.prepare",
    "report": "tenor.reports.report",
    "train": "tenor.training.launching.launch",
}

__all__ = [
    "Behaviour",
    "Drift",
    "DriftSettings",
    "EmbedResult",
    "EmbedSettings",
    "EvaluateSettings",
    "Evaluation",
    "ExplainedPiece",
    "ExportResult",
    "GenerateResult",
    "GenerateSettings",
    "Insights",
    "InsightsSettings",
    "Metrics",
    "PassCount",
    "PredictSettings",
    "Prediction",
    "PrepareResult",
    "PrepareSettings",
    "ReportSettings",
    "RunComparison",
    "RunSummary",
    "RunsSettings",
    "SentimentModel",
    "TenorError",
    "TextNgrams",
    "TextScores",
    "TrainResult",
    "TrainSettings",
    "Vectors",
    "__version__",
    "check_behaviour",
    "compare_runs",
    "embed",
    "evaluate",
    "export_model",
    "find_insights",
    "generate",
    "list_runs",
    "load",
    "load_vectors",
    "measure_drift",
    "neighbours",
    "predict",
    "prepare",
    "report",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tenor' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
