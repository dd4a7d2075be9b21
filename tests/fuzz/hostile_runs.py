"""Hostile run folders and benchmark results."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.mutations import dump, hostile_value, mutate_bytes, mutate_json, mutate_words, replace_file
from fuzz.seeds import Seeds

FILES = (
    *("config.json", "vocab.json", "model.safetensors", "metrics.jsonl", "result.json", "environment.json"),
    *("scores.safetensors", "profile.json", "behaviour.json", "reference.safetensors"),
)
SIZES = (-1, 0, 1, 3, 5, 6000, 20_000, 10**6, 10**9, 10**12, 2**31, 2**63, 10**399, 4.0, 4.5, "4", True, None, [4])
_TOO_LARGE = 1 << 26
_BY_WORKER = ("shares", "compute_seconds", "wait_seconds")


class Draft:
    """A hostile run folder under construction."""

    def __init__(self, rng: random.Random, folder: Path, victims: Path) -> None:
        self.rng, self.folder, self.victims = rng, folder, victims
        self.is_sealed = rng.random() < 0.9  # an attacker can compute the hashes too

    def read(self, name: str) -> bytes:
        """Return a file's bytes, or nothing if it is no longer a plain file."""
        path = self.folder / name
        plain = path.is_file() and not path.is_symlink() and path.stat().st_size < _TOO_LARGE
        return path.read_bytes() if plain else b""

    def load(self, name: str) -> Any:
        return _parse(self.read(name))

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        if path.is_file() and not path.is_symlink():
            path.write_bytes(data)

    def seal(self) -> None:
        """Set the vocabulary hash in the config to the hash of the file."""
        config = self.load("config.json")
        if self.is_sealed and isinstance(config, dict) and "vocab_sha256" in config and self.read("vocab.json"):
            right = hashlib.sha256(self.read("vocab.json")).hexdigest()
            if config["vocab_sha256"] != right:
                self.write("config.json", dump({**config, "vocab_sha256": right}))


def _parse(data: bytes) -> Any:
    """Parse JSON; return an empty object if the data is already damaged."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {}


def spoil_config(draft: Draft) -> str:
    config = draft.load("config.json")
    told = mutate_json(draft.rng, config, draft.rng.choice(["", "model", "tokeniser", "settings", "labels"]))
    draft.write("config.json", dump(config))
    return f"config {told}"


def spoil_sizes(draft: Draft) -> str:
    """Change numbers that determine how much memory a reader allocates."""
    config, rng = draft.load("config.json"), draft.rng
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict) or not config["model"]:
        return "no sizes"
    parts = [config["model"], *(config["model"].get(part) for part in ("wide", "deep")), config.get("settings")]
    part = rng.choice([part for part in parts if isinstance(part, dict) and part])
    name = rng.choice([*part, "max_length", "classes", "tokeniser", "everything"])
    if name == "max_length":
        config[name] = rng.choice(SIZES)
    elif name == "classes":
        wrong = [[], ["one"], ["a", "a"], [f"c{i}" for i in range(300)], [1, 2], [None, None], "ab", {"a": 1, "b": 2}]
        config["classes"] = rng.choice(
            [*wrong, ["\ud800", "b"], ["<b>", "</script>"], ["a" * 10**6, "b"], [["a"], ["b"]]]
        )
    elif name == "tokeniser":
        config[name] = {"clean": hostile_value(rng), "marks": hostile_value(rng), "stopwords": hostile_value(rng)}
    elif name == "everything":
        config = hostile_value(rng)
    else:
        part[name] = rng.choice(SIZES)
    draft.write("config.json", dump(config))
    return f"config's {name}"


def spoil_weights(draft: Draft, name: str = "model.safetensors") -> str:
    data, rng = draft.read(name), draft.rng
    if len(data) < 16:
        return f"no {name}"
    kind = rng.choice(["bytes", "length", "header", "header", "numbers", "tensors"])
    draft.write(name, spoil_tensors(rng, data, kind))
    return f"{name}: {kind}"


def spoil_scores(draft: Draft) -> str:
    return spoil_weights(draft, "scores.safetensors")


def spoil_tensors(rng: random.Random, data: bytes, kind: str) -> bytes:
    """Return the safetensors file with another length, header or numbers."""
    if kind == "bytes":
        return mutate_bytes(rng, data)
    (length,) = struct.unpack_from("<Q", data)
    if kind == "length":
        return (
            struct.pack("<Q", rng.choice([0, 1, length + 1, length - 1, 2**60, 2**63, 2**64 - 1, len(data)])) + data[8:]
        )
    body = bytearray(data[8 + length :])
    try:
        header = json.loads(data[8 : 8 + length])
    except ValueError:
        return mutate_bytes(rng, data)
    if kind == "numbers":
        odd = [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45]
        for _ in range(rng.choice([1, 1, 1000])):
            struct.pack_into("<f", body, 4 * rng.randrange(max(1, len(body) // 4)), rng.choice(odd))
    elif kind == "tensors":
        _spoil_tensor(rng, header, body)
    else:
        mutate_json(rng, header)
    head = dump(header).rstrip(b"\n")
    return struct.pack("<Q", len(head)) + head + bytes(body)


def _spoil_tensor(rng: random.Random, header: dict[str, Any], body: bytearray) -> None:
    name = rng.choice([key for key in header if key != "__metadata__"] or ["none"])
    info = header.get(name)
    if not isinstance(info, dict):
        return
    kind = rng.choice(["dtype", "shape", "flat", "rename", "empty", "more", "far", "fewer"])
    if kind == "dtype":
        info["dtype"] = rng.choice(["F64", "F16", "BF16", "I32", "U32", "BOOL", "I64", "F8_E4M3", "C64", "F32"])
    elif kind == "shape":
        info["shape"] = rng.choice(
            [[2**62], [0, 2**62], [-1], [], [1] * 70, [2**32, 2**32], info["shape"][::-1], [10**399]]
        )
    elif kind == "flat":
        info["shape"] = [info["data_offsets"][1] // 4]
    elif kind == "rename":
        header[rng.choice(["x", "", "forwards.99.weight_ih_l0", "embedding", "\ud800", "a" * 10**5])] = header.pop(name)
    elif kind == "empty":
        header.clear()
        body.clear()
    elif kind == "more":
        for number in range(rng.choice([1, 5000])):
            header[f"extra.{number}"] = {"dtype": "F32", "shape": [0], "data_offsets": [len(body), len(body)]}
    elif kind == "far":
        info["data_offsets"] = rng.choice([[0, 2**63], [2**62, 2**62 + 4], [8, 4], [-4, 0], [len(body), len(body) + 4]])
    else:
        del header[name]


def spoil_reference(draft: Draft) -> str:
    return spoil_weights(draft, "reference.safetensors")


def spoil_vocabulary(draft: Draft) -> str:
    values = draft.load("vocab.json")
    words = values.get("words") if isinstance(values, dict) else None
    if not isinstance(words, list) or not words:
        return "no vocabulary"
    draft.write("vocab.json", mutate_words(draft.rng, words))
    return "vocabulary spoiled"


def spoil_events(draft: Draft) -> str:
    """Put hostile events into metrics.jsonl."""
    rng = draft.rng
    lines = draft.read("metrics.jsonl").splitlines()
    events = [event for line in lines[:50] if isinstance(event := _parse(line), dict)]
    kind = rng.choice(["values", "values", "workers", "many", "garbage", "zeros", "steps"])
    steps = [event for event in events if event.get("event") == "step"]
    if kind == "values" and events:
        for _ in range(rng.choice([1, 3, 20])):
            mutate_json(rng, rng.choice(events))
    elif kind == "workers":
        count = rng.choice([0, 2, 9, 200, 20_000])
        for event in steps:
            event.update(dict.fromkeys(_BY_WORKER, [0.5] * count))
    elif kind == "zeros":
        for event in steps:
            event.update(dict.fromkeys(_BY_WORKER, [rng.choice([0, -1, 1e308, 10**399])] * 3))
    elif kind == "steps":
        for event in steps:
            event["step"] = hostile_value(rng, 3)
            event["loss"] = hostile_value(rng, 0.5)
    data = b"".join(dump(event) for event in events)
    if kind == "many" and steps:
        data += dump(steps[0]) * 100_000
    draft.write("metrics.jsonl", mutate_bytes(rng, data) if kind == "garbage" else data)
    return f"metrics: {kind}"


def spoil_result(draft: Draft) -> str:
    name = draft.rng.choice(["result.json", "result.json", "environment.json", "profile.json", "behaviour.json"])
    values = draft.load(name)
    told = [mutate_json(draft.rng, values) for _ in range(draft.rng.choice([1, 1, 5, 20]))]
    draft.write(name, dump(draft.rng.choice([values] * 9 + [hostile_value(draft.rng)])))
    return f"{name} {told[0]}"


def spoil_bytes(draft: Draft) -> str:
    name = draft.rng.choice(FILES)
    if data := draft.read(name):
        draft.write(name, mutate_bytes(draft.rng, data))
    return f"bytes of {name}"


def spoil_file(draft: Draft) -> str:
    name = draft.rng.choice(
        [*FILES, "config.json", "vocab.json", "model.safetensors", "checkpoints", "report.html", "README.md"]
    )
    return replace_file(draft.rng, draft.folder / name, draft.victims)


def spoil_checkpoint(draft: Draft) -> str:
    """Damage the checkpoint that --resume continues from; its index has the right hashes in most cases."""
    rng, folder = draft.rng, draft.folder / "checkpoints"
    indexes = sorted(folder.glob("step-*.json")) if not folder.is_symlink() else []
    index = next((path for path in indexes if path.is_file() and not path.is_symlink()), None)
    tensors = index.with_suffix(".safetensors") if index else folder
    if index is None or not tensors.is_file() or tensors.is_symlink() or tensors.stat().st_size > _TOO_LARGE:
        return "no checkpoint"
    values: Any = json.loads(index.read_bytes()).get("index") or {}
    kind = rng.choice(["index", "values", "values", "tensors", "tensors", "parts", "file", "name"])
    if kind == "tensors":
        how = rng.choice(["bytes", "length", "header", "numbers", "tensors"])
        tensors.write_bytes(spoil_tensors(rng, tensors.read_bytes(), how))
        values["parts"] = [hashlib.sha256(tensors.read_bytes()).hexdigest()]
    elif kind in ("index", "values"):
        mutate_json(rng, values, "values" if kind == "values" else "")
    elif kind == "parts":
        values["parts"] = rng.choice([[], values["parts"] * 2, ["00" * 32] * 10**5, None, {}, [1], values["parts"][0]])
    elif kind == "file":
        return f"checkpoint {replace_file(rng, rng.choice([index, tensors]), draft.victims)}"
    else:
        index = index.rename(index.with_name(rng.choice(["step-x.json", "step-9999999999.json", "step-.json"])))
    index.write_bytes(_seal(values) if draft.is_sealed else mutate_bytes(rng, _seal(values)))
    return f"checkpoint: {kind}"


def _seal(index: Any) -> bytes:
    """Hash the index as Tenor does; an attacker can do that too."""
    digest = hashlib.sha256(dump(index, canonical=True)).hexdigest()
    return dump({"index": index, "sha256": digest}, canonical=True)


def plant_links(draft: Draft) -> str:
    """Put links at the paths where a writer with guessable names would create its temporary files."""
    target = draft.victims / draft.rng.choice(["file", "new"])
    for name in (*FILES, "report.html", "README.md"):
        for temporary in (f".{name}.tmp", f"{name}.tmp", f".{name}", f"{name}.draft", f"{name}~"):
            (draft.folder / temporary).symlink_to(target)
    (draft.folder / PLANT_BY_PROCESS).write_text(str(target), "utf-8")
    return "links at temporary names"


PLANT_BY_PROCESS = ".plant"  # asks the child to add links with its process id, which is not known earlier


def plant_for_process(folder: Path, pid: int) -> None:
    """Put links at the temporary names that hold this process id or one of the next few."""
    note = folder / PLANT_BY_PROCESS
    if note.is_symlink() or not note.is_file():
        return
    for name in (*FILES, "report.html", "README.md"):
        for number in range(pid, pid + 6):
            link = folder / f".{name}.{number}.tmp"
            if not link.is_symlink():
                link.symlink_to(note.read_text("utf-8"))


RUN_MUTATIONS: dict[Callable[[Draft], str], int] = {
    spoil_config: 5,
    spoil_sizes: 5,
    spoil_weights: 5,
    spoil_scores: 3,
    spoil_reference: 2,
    spoil_vocabulary: 3,
    spoil_events: 4,
    spoil_result: 3,
    spoil_bytes: 3,
    spoil_file: 4,
    plant_links: 1,
}
RESUME_MUTATIONS = {**RUN_MUTATIONS, spoil_checkpoint: 20}


def make_run(rng: random.Random, seeds: Seeds, folder: Path, victims: Path, *, stopped: bool = False) -> list[str]:
    """Fill `folder` with a hostile copy of a good run; return descriptions of the changes."""
    finished = seeds.run if rng.random() < 0.7 else seeds.conv
    shutil.copytree(seeds.stopped if stopped else finished, folder, dirs_exist_ok=True)
    draft = Draft(rng, folder, victims)
    mutations = RESUME_MUTATIONS if stopped else RUN_MUTATIONS
    chosen = rng.choices(list(mutations), list(mutations.values()), k=rng.choice([1, 1, 2, 3]))
    told = [spoil(draft) for spoil in sorted(dict.fromkeys(chosen), key=lambda spoil: spoil is spoil_file)]
    draft.seal()
    return told


def make_bench(rng: random.Random, seeds: Seeds, folder: Path, victims: Path) -> list[str]:
    """Write a hostile benchmark result into `folder`; return descriptions of the changes."""
    file = folder / "scaling.json"
    real = rng.random() < 0.25  # such pages have many plots, which take seconds
    source = rng.choice(sorted(seeds.results.glob("*.json"))) if real else seeds.bench
    values = json.loads(source.read_bytes())
    if rng.random() < 0.1 and source == seeds.bench:
        values["rows"] = [{**values["rows"][0], "workers": number} for number in range(rng.choice([0, 1, 20_000]))]
    told = [source.name, *(mutate_json(rng, values, rng.choice(["", "rows"])) for _ in range(rng.choice([1, 2, 6])))]
    file.write_bytes(dump(values))
    if rng.random() < 0.15:
        file.write_bytes(mutate_bytes(rng, file.read_bytes()))
    if rng.random() < 0.1:
        told.append(replace_file(rng, file, victims))
    return told
