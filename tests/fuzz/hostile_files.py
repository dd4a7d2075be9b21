"""Hostile word vectors, and hostile files that plans and trainings read: measurements, tables, prices, settings."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from fuzz.hostile_runs import SIZES, spoil_tensors
from fuzz.mutations import dump, hostile_value, mutate_bytes, mutate_json, mutate_words, replace_file
from fuzz.seeds import Seeds

VECTORS = ("config.json", "vocab.json", "vectors.safetensors")
EXCHANGED = ("words.txt", "words.bin", "words.vec.gz")
_HEADS = ("-1 4", "0 4", "1 0", "99999999 4", "40 100000", "1" * 18 + " 1", "4 4 4", "", "NaN 4", "\u0662 4", "40")
_TOML = (
    "x = " + "[" * 5000 + "]" * 5000,
    "x = " + "{a=" * 3000 + "1" + "}" * 3000,
    ".".join("a" * 3000) + " = 1",
    "epochs = " + "9" * 5000,
    "epochs = " + "9" * 400,
    "epochs = 0x" + "f" * 5000,
    "lr = 1e999999",
    "lr = nan",
    "epochs = 1979-05-27T07:32:00Z",
    "epochs = [1, 2]",
    '"<script>alert(1)</script>" = 1',
    '["\\u0000"]\ndollars_per_hour = 1',
    '["x"]\ndollars_per_hour = ' + "9" * 400,
    '["x"]\ndollars_per_hour = 1e999999',
    '["x"]\ndollars_per_hour = 1e300\ncores = 9223372036854775807',
    '["x"]\ndollars_per_hour = 1\nnetwork = "' + "9" * 5000 + 'gbit,1ms"',
    '["x"]\ndollars_per_hour = 1\ncores = 0\ngpus = 99999999999999999999',
    '["x"]\ndollars_per_hour = 1\nmemory_gib = 1e-320',
    "= 1",
    "\ufeffepochs = 1",
)
_CELLS = ("0", "-1", "nan", "inf", "1e400", "1e-400", "1e300", "9" * 22, "x", "9" * 400, "<b>", "=1+1", "")


def make_vectors(rng: random.Random, seeds: Seeds, folder: Path, victims: Path) -> list[str]:
    """Fill `folder` with damaged word vectors and damaged files of other programs; return what was done."""
    shutil.copytree(seeds.vectors, folder, dirs_exist_ok=True)
    told = [_spoil_folder(rng, folder, victims)]
    told += [_spoil_exchanged(rng, folder / name, victims) for name in EXCHANGED]
    return told


def _spoil_folder(rng: random.Random, folder: Path, victims: Path) -> str:
    name = rng.choice(VECTORS)
    path = folder / name
    if rng.random() < 0.15:
        return replace_file(rng, path, victims)
    if name == "config.json":
        config = json.loads(path.read_bytes())
        if rng.random() < 0.4:
            config[rng.choice(["dim", "num_words", "subwords"])] = rng.choice(SIZES)
            told = "sizes"
        else:
            told = mutate_json(rng, config)
        path.write_bytes(dump(config))
        return f"config {told}"
    if name == "vocab.json":
        path.write_bytes(mutate_words(rng, json.loads(path.read_bytes())["words"]))
        return "vocabulary"
    kind = rng.choice(["bytes", "length", "header", "numbers", "tensors"])
    path.write_bytes(spoil_tensors(rng, path.read_bytes(), kind))
    return f"vectors: {kind}"


def _spoil_exchanged(rng: random.Random, path: Path, victims: Path) -> str:
    """Damage a file in word2vec's or fastText's format."""
    kind = rng.choice(["bytes", "head", "cell", "bomb", "file", "long"])
    is_packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if is_packed else path.read_bytes()
    head, _, rest = data.partition(b"\n")
    if kind == "file":
        return replace_file(rng, path, victims)
    if kind == "head":
        data = rng.choice(_HEADS).encode() + b"\n" + rest
    elif kind == "cell":
        cells = rest.split(b" ")
        cells[rng.randrange(len(cells))] = rng.choice(_CELLS).encode()
        data = head + b"\n" + b" ".join(cells)
    elif kind == "bomb":
        data = head + b"\n" + bytes(64 << 20)
    elif kind == "long":
        data = head + b"\n" + b"w" * (1 << 20) + b" " + rest
    else:
        data = mutate_bytes(rng, data)
    path.write_bytes(gzip.compress(data, 1) if is_packed else data)
    return f"{path.name}: {kind}"


def make_plans(rng: random.Random, seeds: Seeds, folder: Path, victims: Path) -> list[str]:
    """Fill `folder` with the inputs of plans and a file of settings, some of them damaged; return what was done."""
    shutil.copytree(seeds.plans, folder, dirs_exist_ok=True)
    chosen = rng.sample(list(_PLANS), rng.choice([2, 4, 8]))
    return [f"{name} {_PLANS[name](rng, folder / name)}" for name in chosen] + (
        [replace_file(rng, folder / rng.choice(list(_PLANS)), victims)] if rng.random() < 0.4 else []
    )


def _json(rng: random.Random, path: Path) -> str:
    value = json.loads(path.read_bytes())
    told = [mutate_json(rng, value) for _ in range(rng.choice([1, 1, 4]))]
    path.write_bytes(dump(value))
    return told[0]


def _lines(rng: random.Random, path: Path) -> str:
    """Damage some JSON lines, or all of them in the same place."""
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    if rng.random() < 0.3:
        name, value = rng.choice(list(events[0])), hostile_value(rng)
        for event in events:
            event[name] = value
        told = f"all {name}"
    else:
        told = mutate_json(rng, events, "")
    path.write_bytes(b"".join(dump(event) for event in events))
    return told


def _toml(rng: random.Random, path: Path) -> str:
    if rng.random() < 0.3:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        return "bytes"
    extra = rng.choice(_TOML)
    path.write_text(rng.choice([extra, extra + "\n" + path.read_text("utf-8")]) + "\n", "utf-8")
    return extra[:40]


def _table(rng: random.Random, path: Path) -> str:
    lines = path.read_text("utf-8").splitlines()
    place = rng.randrange(len(lines))
    cells = lines[place].split(",")
    cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
    lines[place] = ",".join(cells)
    if rng.random() < 0.2:
        lines = lines[:1] + lines[1:] * 20_000
    data = "\n".join(lines).encode()
    path.write_bytes(mutate_bytes(rng, data) if rng.random() < 0.3 else data)
    return lines[place][:60]


def _sizes(rng: random.Random, path: Path) -> str:
    """Prepared data's job.json, which says how fast it was made."""
    path.write_bytes(rng.choice([dump(hostile_value(rng)), dump({"bytes": 10**399, "seconds": 1, "workers": 1})]))
    return "job"


_PLANS: dict[str, Callable[[random.Random, Path], str]] = {
    "run/config.json": _json,
    "run/environment.json": _json,
    "run/metrics.jsonl": _lines,
    "measurement.json": _json,
    "runs.json": _json,
    "runs.csv": _table,
    "prices.toml": _toml,
    "train.toml": _toml,
    "predictions.jsonl": _lines,
    "data/job.json": _sizes,
}


def write_exchanged(folder: Path, words: tuple[str, ...], rows: list[list[float]]) -> None:
    """Write the same vectors in the formats of other programs."""
    head = f"{len(words)} {len(rows[0])}\n"
    text = head + "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True))
    (folder / "words.txt").write_text(text, "utf-8")
    (folder / "words.vec.gz").write_bytes(gzip.compress(text.encode()))
    binary = b"".join(
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + b"\n" for word, row in zip(words, rows, strict=True)
    )
    (folder / "words.bin").write_bytes(head.encode() + binary)
