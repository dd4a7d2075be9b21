"""Write a run folder with a small untrained model directly."""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.part import initialise
from tenor.models.spec import DeepSpec, ModelSpec, WideSpec
from tenor.training.runs.config import FORMAT

WORDS = ["good", "bad", "film", "plot", "not"]


def write_model(
    folder: Path,
    num_classes: int = 2,
    parts: str = "wide-deep",
    words: Sequence[str] = WORDS,
    wide: WideSpec = WideSpec(8, 2),  # noqa: B008 - it is frozen
    **changes: Any,
) -> Path:
    """Write vocabulary, config and weights; `changes` override fields of the deep part's specification."""
    folder.mkdir(parents=True)
    vocabulary = (json.dumps({"format": 1, "words": words}, ensure_ascii=False) + "\n").encode()
    (folder / "vocab.json").write_bytes(vocabulary)
    deep = DeepSpec(**{"vocab_size": len(words) + 2, "embedding_dim": 3, "hidden": 4, **changes})
    spec = ModelSpec(num_classes, wide if "wide" in parts else None, deep if "deep" in parts else None)
    model = ReviewNetwork(spec)
    model.combination.start()
    if model.wide is not None:
        model.wide.start(np.ones(1 << wide.bits, np.float32))
        torch.nn.init.normal_(model.wide.ngrams.weight, generator=torch.Generator().manual_seed(1))
    if model.deep is not None:
        initialise(model.deep, seed=1)
    save_file(model.state_dict(), folder / "model.safetensors")
    names = ["negative", "positive"] if spec.num_classes == 2 else [str(n + 1) for n in range(spec.num_classes)]
    config = {
        "format": FORMAT,
        "model": spec.as_dict(),
        "classes": names,
        "labels": {name: [str(place)] for place, name in enumerate(names)},
        "tokeniser": {"clean": "words", "marks": True, "stopwords": []},
        "max_length": 400,
        "data_sha256": "0" * 64,
        "vocab_sha256": hashlib.sha256(vocabulary).hexdigest(),
        "settings": {"task": "reviews", "seed": 0},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def change_config(folder: Path, **values: Any) -> None:
    """Replace values in config.json; `model__deep__hidden=5` replaces config["model"]["deep"]["hidden"]."""
    config = json.loads((folder / "config.json").read_text())
    for name, value in values.items():
        *outer, inner = name.split("__")
        functools.reduce(operator.getitem, outer, config)[inner] = value
    (folder / "config.json").write_text(json.dumps(config))


def change_weights(folder: Path, **changes: torch.Tensor) -> None:
    """Replace tensors by name, with `__` for a dot; the file has no hash, so only the tensors can be wrong."""
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    weights |= {name.replace("__", "."): tensor for name, tensor in changes.items()}
    save_file(weights, folder / "model.safetensors")
