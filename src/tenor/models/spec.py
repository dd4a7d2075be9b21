"""The architecture of a model, as a run's config.json records it, and the shapes of its weights. Loads no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

POOLING_WIDTHS = {"max": 1, "mean": 1, "last": 1, "max-mean": 2}  # numbers that a pooling gives per number
_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass(frozen=True)
class WideSpec:
    """The architecture of the wide part."""

    bits: int  # there are 2^bits buckets
    longest: int = 3  # tokens of the longest n-gram
    characters: int = 0  # of the longest n-gram within a word; 0: none


@dataclass(frozen=True)
class DeepSpec:
    """The architecture of the deep part."""

    vocab_size: int
    cell: str = "lstm"
    embedding_dim: int = 100
    hidden: int = 128
    layers: int = 1
    bidirectional: bool = False
    pooling: str = "max-mean"
    dropout: float = 0.0  # of the outputs of each layer
    input_dropout: float = 0.0  # of the word vectors
    window: int = 7  # inputs that an output of the cell conv reads
    length: int = 400  # tokens of a longer review that are read: the first and the last ones

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1


@dataclass(frozen=True)
class ModelSpec:
    """The architecture of the model. At least one part is not None."""

    num_classes: int = 2
    wide: WideSpec | None = None
    deep: DeepSpec | None = None

    @property
    def num_outputs(self) -> int:
        """Two classes need one logit."""
        return 1 if self.num_classes == 2 else self.num_classes

    @property
    def num_parts(self) -> int:
        return (self.wide is not None) + (self.deep is not None)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


Shape = tuple[int, ...]


def weight_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """The names and shapes of all weights, as the model's `state_dict` has them."""
    outputs = spec.num_outputs
    shapes: dict[str, Shape] = {
        "combination.scales": (spec.num_parts,),
        "combination.shifts": (outputs,),
        "combination.threshold": (1,),
    }
    if spec.wide is not None:
        buckets = 1 << spec.wide.bits
        shapes |= {
            "wide.importance": (buckets,),
            "wide.ngrams.weight": (buckets, outputs),
            "wide.bias": (outputs,),
        }
    return shapes | (_deep_shapes(spec.deep, outputs) if spec.deep is not None else {})


def _deep_shapes(spec: DeepSpec, outputs: int) -> dict[str, Shape]:
    states = spec.hidden * spec.directions
    shapes: dict[str, Shape] = {
        "deep.embedding.weight": (spec.vocab_size, spec.embedding_dim),
    }
    for layer in range(spec.layers):
        width = states if layer else spec.embedding_dim
        for direction in ("forwards", "backwards")[: spec.directions]:
            cell = _cell_shapes(spec, width)
            shapes |= {f"deep.{direction}.{layer}.{name}": shape for name, shape in cell.items()}
    width = POOLING_WIDTHS[spec.pooling] * states
    return shapes | {"deep.head.weight": (outputs, width), "deep.head.bias": (outputs,)}


def _cell_shapes(spec: DeepSpec, width: int) -> dict[str, Shape]:
    hidden = spec.hidden
    if spec.cell == "conv":
        return {"weight": (hidden, spec.window * width), "bias": (hidden,)}
    if spec.cell == "qrnn":
        return {"weight_before": (3 * hidden, width), "weight_now": (3 * hidden, width), "bias": (3 * hidden,)}
    if spec.cell not in _GATES:
        return _torch_shapes(spec, width)
    rows = _GATES[spec.cell] * hidden
    return {
        "weight_ih_l0": (rows, width),
        "weight_hh_l0": (rows, hidden),
        "bias_ih_l0": (rows,),
        "bias_hh_l0": (rows,),
    }


def _torch_shapes(spec: DeepSpec, width: int) -> dict[str, Shape]:
    """Those of a cell that is defined in torch alone."""
    import torch

    from tenor.models.deep.cells import make_cell

    with torch.device("meta"):
        cell = make_cell(spec.cell, width, spec.hidden, spec.window)
    return {name: tuple(weight.shape) for name, weight in cell.state_dict().items()}
