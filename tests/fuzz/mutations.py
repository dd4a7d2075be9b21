"""Mutations of JSON values, bytes and files. Each takes a seeded random generator, so that a seed repeats a case."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

# Texts that json.dumps cannot write: placeholders stand for them, which `dump` replaces.
_RAW = {
    "@deep@": "[" * 4000 + "]" * 4000,
    "@deeper@": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "@digits@": "9" * 5000,
    "@exponent@": "1e999999",
    "@unclosed@": '{"a": [',
    "@twice@": '{"a": 1, "a": 2}',
}


def hostile_value(rng: random.Random, old: Any = None) -> Any:
    """Return a value that breaks a careless reader; sometimes it resembles the old value."""
    if isinstance(old, int | float) and abs(old) < 2**64 and not isinstance(old, bool) and rng.random() < 0.5:
        return rng.choice([old + 1, old - 1, -old, old * 2, float(old), str(old), [old], {"x": old}, old * 10**6])
    if isinstance(old, str) and 0 < len(old) < 1000 and rng.random() < 0.5:
        return rng.choice([old[:-1], old.upper(), old + "\x00", old * 1000, [old], "\ud800" + old])
    if isinstance(old, list) and _is_flat(old) and rng.random() < 0.5:
        return rng.choice([old[:-1], old[::-1], old * 2, old * 3000, old[:1], [old], dict(enumerate(old))])
    return copy.deepcopy(rng.choice(_VALUES))


def _is_flat(values: list[Any]) -> bool:
    """Return whether the list can be copied thousands of times: nested values would be shared and grow together."""
    return 0 < len(values) < 50 and not any(isinstance(value, dict | list) for value in values)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_VALUES: list[Any] = [
    -1, 0, 1, 2, 3, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**9, 10**12,
    10**399, -(10**399), 0.5, 1.5, -0.0, 5e-324, 1e308, float("nan"), float("inf"), float("-inf"), True, False, None,
    "", "0", "1", "nan", "a" * 100_000, "\ud800", "\udcff", "\x00", "<script>alert(1)</script>", '" onload="x',
    "../victims/file", "../victims/new", "/dev/zero", "%s%n", "{0}", "日本", "\r\n\x1b[31m", [], {}, [[]], [None],
    [None] * 1000, {"": None},
    {"a" * 5000: 1}, list(range(3000)), _nested(50), _nested(200), [0.1] * 20_000, *_RAW,
]  # fmt: skip


def dump(value: Any, indent: int | None = None, canonical: bool = False) -> bytes:
    """Write JSON that may hold invalid parts; `canonical` uses the format of Tenor's own files."""
    options: dict[str, Any] = {"indent": indent}
    if canonical:
        options = {"indent": 1, "sort_keys": True, "ensure_ascii": False}
    text = json.dumps(value, **options)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def mutate_json(rng: random.Random, tree: Any, within: str = "") -> str:
    """Change one place of a JSON tree, below the key `within` if given; return a description."""
    places = list(islice(_places(tree, within), 1000))
    if not places:
        return "nothing to spoil"
    holder, key, path = rng.choice(places)
    kind = rng.choice(["replace"] * 6 + ["delete", "extra", "swap", "repeat"])
    if kind == "replace":
        holder[key] = hostile_value(rng, holder[key])
        return f"{path} = {str(holder[key])[:40]!r}"
    if kind == "delete":
        del holder[key]
    elif kind == "extra" and isinstance(holder, dict):
        holder[rng.choice(["extra", "", "__class__", "\ud800", "a" * 1000])] = hostile_value(rng)
    elif kind == "swap":
        other, other_key, _ = rng.choice(places)
        if not isinstance(holder[key], dict | list) and not isinstance(other[other_key], dict | list):
            holder[key], other[other_key] = other[other_key], holder[key]
    elif isinstance(holder, list) and len(holder) < 50:
        holder.extend(holder[:1] * rng.choice([1, 20, 20_000 if _is_flat(holder) else 20]))
    return f"{kind} {path}"


def _places(tree: Any, within: str, path: str = "", depth: int = 0) -> Iterator[tuple[Any, Any, str]]:
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys)[:40]:
        here = f"{path}.{key}"
        if here.startswith(f".{within}") or not within:
            yield tree, key, here
        if depth < 8:
            yield from _places(tree[key], within, here, depth + 1)


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flipped bits, cuts, insertions, or nothing left of the old file at all."""
    spoiled = bytearray(data)
    at, span = rng.randrange(len(data) + 1), rng.choice([1, 2, 8, 64, 4096])
    kind = rng.randrange(8)
    if kind <= 2:
        for _ in range(rng.choice([1, 1, 3, 30])):
            if spoiled:
                spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    elif kind == 3:
        del spoiled[at:]
    elif kind == 4:
        spoiled[at : at + span] = rng.randbytes(span)
    elif kind == 5:
        spoiled[at:at] = rng.choice([b"\x00", b"\xff", b'"', b"}", b"NaN", b"\n"]) * span
    elif kind == 6:
        del spoiled[at : at + span]
    else:
        return rng.choice(
            [b"", b"null\n", b"[]\n", b"{}\n", b"\xff\xfe", b"\xef\xbb\xbf{}", b"PK\x03\x04", b"\x00" * 4096]
        )
    return bytes(spoiled)


def replace_file(rng: random.Random, path: Path, victims: Path) -> str:
    """Replace a file by a link, a pipe, a folder, a link to a device or a huge sparse file; return a description."""
    targets = {
        "victim": victims / "file",
        "victim folder": victims / "folder",
        "zero": "/dev/zero",
        "full": "/dev/full",
        "nowhere": victims / "new",
        "itself": path.name,
        "relative": os.path.relpath(victims / "file", path.parent),
    }
    kind = rng.choice([*targets, "pipe", "folder", "gone", "hollow"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind in targets:
        path.symlink_to(targets[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hollow":
        path.touch()
        os.truncate(path, size := rng.choice([8 << 30, 3 << 30, 1 << 30, 250 << 20, 60 << 20, 15 << 20]))
        return f"{path.name} is {kind}, {size} bytes"
    return f"{path.name} is {kind}"


def mutate_words(rng: random.Random, words: list[Any]) -> bytes:
    """Return a damaged vocabulary file made of these words."""
    kind = rng.randrange(10)
    if kind == 0:
        words[rng.randrange(len(words))] = words[0]
    elif kind == 1:
        words[rng.randrange(len(words))] = "long" * rng.choice([100, 20_000, 500_000])
    elif kind == 2:
        words[rng.randrange(len(words))] = rng.choice(
            ["\ud800", "", " ", "\x00", "a b", "É", "\n", "<script>alert(1)</script>"]
        )
    elif kind == 3:
        words[rng.randrange(len(words))] = hostile_value(rng)
    elif kind == 4:
        words += [f"w{number}" for number in range(rng.choice([1, 1000, 200_000]))]
    elif kind == 5:
        del words[rng.randrange(len(words)) :]
    whole: Any = {"format": 1, "words": words}
    if kind == 6:
        mutate_json(rng, whole)
    elif kind == 7:
        return mutate_bytes(rng, dump(whole))
    elif kind == 8:
        return dump(rng.choice([words, {"words": dict.fromkeys(map(str, words), 1)}, {"format": 1}, "words", None]))
    text = json.dumps(whole, ensure_ascii=rng.random() < 0.3) if kind < 6 else dump(whole).decode("utf-8", "replace")
    return text.encode("utf-8", "backslashreplace").rstrip(b"\n") + b"\n"
