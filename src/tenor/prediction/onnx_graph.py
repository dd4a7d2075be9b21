"""A trained model as an ONNX graph, from token ids to probabilities. It needs the extra `onnx`.

The graph hashes the n-grams itself, so its only inputs are `tokens` (rows, time), padded with 0 at the end, and
`lengths` (rows,). Both dimensions are free. The tokeniser and the vocabulary stay outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import MissingExtra, UsageError
from tenor.models.spec import DeepSpec, WideSpec
from tenor.models.wide.characters import Characters
from tenor.models.wide.hashing import GOLDEN, MIX_STEPS
from tenor.runtime.read_run import RunContents

OPSET = 18
_LOWEST = np.float32(-3.0e38)


def make_onnx(contents: RunContents, *, int8: bool = False) -> bytes:
    """The bytes of an ONNX file.

    Args:
        contents: The run.
        int8: Store the tables of n-grams and of word vectors as 8-bit integers, a quarter of the size.

    Raises:
        UsageError: The deep part is not a convolution with max pooling.
        MissingExtra: The package onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtra("tenor export --format onnx", "onnx") from None
    spec = contents.spec
    if spec.deep is not None and not _is_plain(spec.deep):
        what = f"the deep part has the cell {spec.deep.cell}, {spec.deep.layers} layers and pooling {spec.deep.pooling}"
        raise UsageError(what, remedy="export a wide model, or one with --cell conv --pooling max of one layer")
    graph = Graph(int8)
    weights, parts = contents.weights, []
    if spec.wide is not None:
        parts.append(_wide(graph, spec.wide, weights, contents.characters))
    if spec.deep is not None:
        parts.append(_deep(graph, spec.deep, weights))
    total = graph.constant(weights["combination.shifts"].astype(np.float32))
    for scale, logits in zip(weights["combination.scales"].astype(np.float32), parts, strict=True):
        total = graph.add("Add", total, graph.add("Mul", logits, graph.constant(scale)))
    if spec.num_outputs == 1:
        positive = graph.add("Sigmoid", total)
        negative = graph.add("Sub", graph.constant(np.float32(1)), positive)
        graph.add("Concat", negative, positive, axis=1, name="probabilities")
    else:
        graph.add("Softmax", total, axis=1, name="probabilities")
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [
        helper.make_tensor_value_info("tokens", kinds.INT64, ["rows", "time"]),
        helper.make_tensor_value_info("lengths", kinds.INT64, ["rows"]),
    ]
    outputs = [helper.make_tensor_value_info("probabilities", kinds.FLOAT, ["rows", spec.num_classes])]
    made = helper.make_graph(graph.nodes, "tenor", inputs, outputs, graph.tensors)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    model.metadata_props.add(key="classes", value="\n".join(contents.config["classes"]))
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def _is_plain(spec: DeepSpec) -> bool:
    return spec.cell == "conv" and spec.layers == 1 and spec.pooling == "max" and not spec.bidirectional


class Graph:
    """Collects nodes and constants."""

    def __init__(self, int8: bool) -> None:
        from onnx import helper, numpy_helper

        self._make_node, self._make_tensor, self._int8 = helper.make_node, numpy_helper.from_array, int8
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(self._make_tensor(np.asarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the name of the output."""
        output = name or f"n{len(self.nodes)}"
        self.nodes.append(self._make_node(operator, list(inputs), [output], **attributes))
        return output

    def rows_of(self, table: NDArray[Any], ids: str) -> str:
        """The rows of a large table with these ids."""
        table = table.astype(np.float32)
        if not self._int8:
            return self.add("Gather", self.constant(table), ids, axis=0)
        scale = np.float32(max(float(np.abs(table).max()), 1e-30) / 127)
        small = self.constant(np.clip(np.rint(table / scale), -127, 127).astype(np.int8))
        found = self.add("Cast", self.add("Gather", small, ids, axis=0), to=1)
        return self.add("Mul", found, self.constant(scale))


def _wide(graph: Graph, spec: WideSpec, weights: Any, characters: Characters) -> str:
    """(rows, outputs)"""
    buckets = [_buckets(graph, spec, size) for size in range(1, spec.longest + 1)]
    if len(characters.hashes):
        buckets.append(_character_buckets(graph, spec, characters))
    every = graph.add("Concat", *buckets, axis=1) if len(buckets) > 1 else buckets[0]
    count = graph.add("Gather", graph.add("Shape", every), graph.integers(1), axis=0)
    # Each n-gram of a row counts once: of equal neighbours in sorted order, the first is kept.
    graph.nodes.append(graph._make_node("TopK", [every, count], ["sorted", "order"], axis=1, largest=1, sorted=1))
    before = graph.add("Pad", "sorted", graph.integers(0, 1, 0, -1), graph.constant(np.int64(-2)), mode="constant")
    is_new = graph.add("Not", graph.add("Equal", "sorted", before))
    is_real = graph.add("GreaterOrEqual", "sorted", graph.constant(np.int64(0)))
    kept = graph.add("Cast", graph.add("And", is_new, is_real), to=1)
    ids = graph.add("Max", "sorted", graph.constant(np.int64(0)))
    importance = graph.add("Mul", graph.rows_of(weights["wide.importance"], ids), kept)
    values = graph.rows_of(weights["wide.ngrams.weight"], ids)  # (rows, n-grams, outputs)
    column = graph.add("Unsqueeze", importance, graph.integers(2))
    sums = graph.add("ReduceSum", graph.add("Mul", values, column), graph.integers(1), keepdims=0)
    square = graph.add("ReduceSum", graph.add("Mul", importance, importance), graph.integers(1), keepdims=1)
    length = graph.add("Sqrt", graph.add("Max", square, graph.constant(np.float32(1e-30))))
    return graph.add("Add", graph.add("Div", sums, length), graph.constant(weights["wide.bias"].astype(np.float32)))


def _buckets(graph: Graph, spec: WideSpec, size: int) -> str:
    """(rows, time): the bucket of the n-gram that begins at each token; -1 where the row ends before it does."""
    state = ""
    for place in range(size):
        token = graph.add(
            "Pad", "tokens", graph.integers(0, -place, 0, place), graph.constant(np.int64(0)), mode="constant"
        )
        added = graph.add("Add", token, graph.constant(np.int64(1)))
        if state:
            added = graph.add("Add", graph.add("Mul", state, graph.constant(np.uint64(GOLDEN).astype(np.int64))), added)
        state = _mixed(graph, added)
    bucket = graph.add("Cast", _shifted(graph, state, 64 - spec.bits), to=7)
    last = graph.add("Add", _steps(graph, "tokens"), graph.constant(np.int64(size)))
    fits = graph.add("LessOrEqual", last, graph.add("Unsqueeze", "lengths", graph.integers(1)))
    return graph.add("Where", fits, bucket, graph.constant(np.int64(-1)))


def _character_buckets(graph: Graph, spec: WideSpec, characters: Characters) -> str:
    """(rows, time × most of a word): the buckets of each token's character n-grams; -1 where it has fewer."""
    counts = np.diff(characters.starts)
    table = np.full((len(counts), characters.most), -1, np.int32)  # a row per id; padding has none
    places = np.arange(characters.most) < counts[:, None]
    table[places] = (characters.hashes >> np.uint64(64 - spec.bits)).astype(np.int32)
    known = graph.add("Min", "tokens", graph.constant(np.int64(len(counts) - 1)))
    found = graph.add("Gather", graph.constant(table), known, axis=0)
    return graph.add("Reshape", graph.add("Cast", found, to=7), graph.integers(0, -1))


def _steps(graph: Graph, matrix: str) -> str:
    """0, 1, … for each column of a matrix."""
    count = graph.add("Gather", graph.add("Shape", matrix), graph.constant(np.int64(1)), axis=0)
    return graph.add("Range", graph.constant(np.int64(0)), count, graph.constant(np.int64(1)))


def _shifted(graph: Graph, state: str, bits: int) -> str:
    """The upper bits of a 64-bit number, as unsigned."""
    unsigned = graph.add("Cast", state, to=13)
    return graph.add("BitShift", unsigned, graph.constant(np.uint64(bits)), direction="RIGHT")


def _mixed(graph: Graph, state: str) -> str:
    """The same as `mixed` of the n-grams. Products are of signed numbers, which ONNX runtimes support; bits agree."""
    for bits, factor in MIX_STEPS:
        upper = graph.add("Cast", _shifted(graph, state, bits), to=7)
        state = graph.add("BitwiseXor", state, upper)
        if factor:
            state = graph.add("Mul", state, graph.constant(np.uint64(factor).astype(np.int64)))
    return state


def _deep(graph: Graph, spec: DeepSpec, weights: Any) -> str:
    """(rows, outputs): of a longer row, the first and the last tokens are read."""
    limit, head = graph.constant(np.int64(spec.length)), graph.constant(np.int64(spec.length - spec.length // 2))
    lengths = graph.add("Unsqueeze", "lengths", graph.integers(1))  # (rows, 1)
    steps = graph.add("Slice", _steps(graph, "tokens"), graph.integers(0), graph.integers(spec.length))
    skipped = graph.add("Max", graph.add("Sub", lengths, limit), graph.constant(np.int64(0)))
    is_tail = graph.add("Cast", graph.add("GreaterOrEqual", steps, head), to=7)
    places = graph.add("Add", steps, graph.add("Mul", skipped, is_tail))
    ids = graph.add("GatherElements", "tokens", places, axis=1)
    vectors = graph.add("Transpose", graph.rows_of(weights["deep.embedding.weight"], ids), perm=[0, 2, 1])
    weight = weights["deep.forwards.0.weight"].astype(np.float32)
    width = weight.shape[1] // spec.window
    filters = graph.constant(np.ascontiguousarray(weight.reshape(-1, spec.window, width).transpose(0, 2, 1)))
    bias = graph.constant(weights["deep.forwards.0.bias"].astype(np.float32))
    outputs = graph.add("Conv", vectors, filters, bias, pads=[spec.window - 1, 0])  # (rows, hidden, time)
    is_real = graph.add("Unsqueeze", graph.add("Less", steps, lengths), graph.integers(1))
    real = graph.add("Where", is_real, outputs, graph.constant(_LOWEST))
    pooled = graph.add("Relu", graph.add("ReduceMax", real, graph.integers(2), keepdims=0))
    matrix = graph.constant(np.ascontiguousarray(weights["deep.head.weight"].astype(np.float32).T))
    bias = graph.constant(weights["deep.head.bias"].astype(np.float32))
    return graph.add("Add", graph.add("MatMul", pooled, matrix), bias)
