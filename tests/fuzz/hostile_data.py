"""Hostile prepared data: damaged shards, manifests and vocabularies, in most cases with hashes that match."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from fuzz.mutations import dump, hostile_value, mutate_bytes, mutate_json, mutate_words, replace_file
from fuzz.seeds import Seeds

ARRAYS = ("tokens", "offsets", "labels")
DTYPES = (
    "i1",
    "<i2",
    "<i4",
    "<i8",
    "u1",
    "<u2",
    "<u4",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    ">i2",
    ">i4",
    ">i8",
    ">u2",
    "<c8",
    "?",
)
EXTREMES = (-1, -(2**31), -(2**63), 2**16 - 1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 10**12)


class Draft:
    """A hostile data folder under construction: its manifest, and the shard that the mutations change."""

    def __init__(self, rng: random.Random, seeds: Seeds, folder: Path, victims: Path) -> None:
        self.rng, self.folder, self.victims = rng, folder, victims
        shutil.copytree(seeds.data, folder, dirs_exist_ok=True)
        self.manifest: Any = json.loads((folder / "manifest.json").read_bytes())
        self.num_words: int = self.manifest["vocab_size"]
        self.split = rng.choice(["train", "train", "valid", "test"])
        self.info = self.manifest["splits"][self.split]["shards"][0]
        self.path = folder / self.info["file"]
        self.is_sealed = rng.random() < 0.9  # an attacker can compute the hashes too
        self.counts_right = rng.random() < 0.7

    def read(self) -> dict[str, Any]:
        """Return the current arrays of the shard, or nothing if it is no longer a readable shard."""
        try:
            with h5py.File(self.path, "r") as h5:
                if sum(h5[name].nbytes for name in ARRAYS) > 1 << 26:
                    return {}  # an earlier mutation made the shard claim more data than it holds
                return {name: h5[name][()] for name in ARRAYS}
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, AttributeError):
            return {}

    def write(self, arrays: dict[str, Any]) -> None:
        with h5py.File(self.path, "w", libver="v110") as h5:
            for name, array in arrays.items():
                h5.create_dataset(name, data=array)
        self.count(arrays)

    def count(self, arrays: dict[str, Any]) -> None:
        """Set the manifest's counts to those of the arrays, unless this draft keeps wrong counts."""
        if not self.counts_right:
            return
        rows, tokens = np.size(arrays.get("labels", ())), np.size(arrays.get("tokens", ()))
        self.info |= {"rows": rows, "tokens": tokens}
        self.manifest["splits"][self.split] |= {"rows": rows, "tokens": tokens}

    def seal(self) -> None:
        """Update the hashes and sizes of the files, then write the manifest."""
        if self.is_sealed:
            _seal_shards(self.manifest, self.folder)
            vocabulary = self.folder / "vocab.json"
            if vocabulary.is_file() and vocabulary.stat().st_size < 1 << 26 and isinstance(self.manifest, dict):
                self.manifest["vocab_sha256"] = _sha256(vocabulary)
        if not (self.folder / "manifest.json").is_symlink() and (self.folder / "manifest.json").is_file():
            (self.folder / "manifest.json").write_bytes(dump(self.manifest, canonical=self.rng.random() < 0.95))


def _seal_shards(manifest: Any, folder: Path) -> None:
    try:
        infos = [info for split in manifest["splits"].values() for info in split["shards"][:8]]
        for info in infos:
            path = folder / info["file"]
            if path.is_file() and path.stat().st_size < 1 << 26:
                info |= {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    except (TypeError, KeyError, AttributeError, ValueError, OSError):
        return  # the damaged manifest no longer names any files


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def spoil_offsets(draft: Draft) -> str:
    arrays, rng = draft.read(), draft.rng
    offsets = arrays.get("offsets")
    if offsets is None or np.ndim(offsets) != 1 or np.size(offsets) < 4:
        return "no offsets"
    offsets = offsets.astype(np.int64)
    at = rng.randrange(1, len(offsets) - 1)
    kind = rng.choice(["fall", "jump", "extreme", "end", "start", "equal", "short", "long", "wrap", "random", "swap"])
    if kind == "fall":
        offsets[at] = offsets[at - 1] - rng.choice([1, 3, 1000])
    elif kind == "jump":
        offsets[at:] += rng.choice([1, 1000, 2**20, 2**31, 2**40])
    elif kind == "extreme":
        offsets[rng.choice([at, 0, -1])] = rng.choice(EXTREMES)
    elif kind == "end":
        offsets[-1] += rng.choice([-1, 1, 100, 2**32])
    elif kind == "start":
        offsets[0] = rng.choice([1, 5, -4])
    elif kind == "equal":
        offsets[1:-1] = offsets[rng.choice([0, -1])]
    elif kind == "short":
        offsets = offsets[:-1]
    elif kind == "long":
        offsets = np.append(offsets, offsets[-1])
    elif kind == "wrap":
        offsets[at:] += 2**32  # truncated to 32 bits, the length is the old one
    elif kind == "random":
        offsets = np.array([rng.randrange(-(2**40), 2**40) for _ in offsets], np.int64)
    else:
        offsets[[at, at + 1]] = offsets[[at + 1, at]]
    draft.write({**arrays, "offsets": offsets})
    return f"offsets {kind}"


def spoil_numbers(draft: Draft) -> str:
    """Write token ids beyond the vocabulary, or labels beyond the classes."""
    arrays, rng = draft.read(), draft.rng
    name = rng.choice(["tokens", "tokens", "labels"])
    array = arrays.get(name)
    if array is None or np.ndim(array) != 1 or not np.size(array) or array.dtype.kind not in "iu":
        return "no numbers"
    if name == "tokens" and rng.random() < 0.6:
        array = array.astype(np.int32)
    limits = np.iinfo(array.dtype)
    wild = [2, 3, 255, len(array), draft.num_words, draft.num_words - 1, *EXTREMES]
    places = rng.sample(range(len(array)), rng.choice([1, 1, len(array)]))
    array[places] = min(max(rng.choice(wild), int(limits.min)), int(limits.max))
    draft.write({**arrays, name: array})
    return f"{name} out of range"


def spoil_type(draft: Draft) -> str:
    arrays, rng = draft.read(), draft.rng
    name = rng.choice(ARRAYS)
    if name not in arrays or np.asarray(arrays[name]).dtype.kind not in "iufb":
        return "no array"
    array, kind = np.asarray(arrays[name]), rng.choice([*DTYPES, "text", "compound", "opaque", "objects", "enum"])
    with np.errstate(all="ignore"):
        if kind == "text":
            array = array.astype("S5")
        elif kind == "compound":
            array = array.astype([("a", "<i4"), ("b", "<i4")])
        elif kind == "opaque":
            array = array.astype("V4") if array.dtype.itemsize == 4 else array.view(f"V{array.dtype.itemsize}")
        elif kind == "objects":
            array = np.array([str(value) for value in array.ravel()], dtype=h5py.string_dtype())
        elif kind == "enum":
            array = np.zeros(array.shape, dtype=h5py.enum_dtype({"a": 0, "b": 1}, basetype="i4"))
        else:
            array = array.astype(kind)
    draft.write({**arrays, name: array})
    return f"{name} as {kind}"


def spoil_shape(draft: Draft) -> str:
    arrays, rng = draft.read(), draft.rng
    name = rng.choice(ARRAYS)
    if name not in arrays or np.ndim(arrays[name]) != 1:
        return "no array"
    array = arrays[name]
    kind = rng.choice(["scalar", "column", "row", "cube", "empty", "null", "shorter", "longer", "none at all"])
    shaped = {
        "scalar": lambda: array[0] if len(array) else 0,
        "column": lambda: array.reshape(-1, 1),
        "row": lambda: array.reshape(1, -1),
        "cube": lambda: np.stack([array, array])[None],
        "empty": lambda: array[:0],
        "null": lambda: h5py.Empty(array.dtype),
        "shorter": lambda: array[: len(array) // 2],
        "longer": lambda: np.concatenate([array, array]),
    }
    if kind == "none at all":
        draft.write({key: value[: 1 if key == "offsets" else 0] for key, value in arrays.items()})
    else:
        draft.write({**arrays, name: shaped[kind]()})
    return f"{name} {kind}"


def spoil_layout(draft: Draft) -> str:
    """Replace a dataset by one that is external, chunked or compressed, or by something that is not a dataset."""
    arrays, rng = draft.read(), draft.rng
    name = rng.choice(ARRAYS)
    if name not in arrays or np.ndim(arrays[name]) != 1 or not np.size(arrays[name]):
        return "no array"
    kind = rng.choice(list(LAYOUTS))
    with h5py.File(draft.path, "w", libver="latest" if rng.random() < 0.3 else "v110") as h5:
        for other in ARRAYS:
            if other != name:
                h5.create_dataset(other, data=arrays[other])
        LAYOUTS[kind](h5, name, arrays[name], draft)
    draft.count(arrays)
    return f"{name} {kind}"


def _chunked(**options: Any) -> Callable[[Any, str, Any, Draft], None]:
    return lambda h5, name, array, draft: h5.create_dataset(name, data=array, chunks=(min(7, len(array)),), **options)


def _external(h5: Any, name: str, array: Any, draft: Draft) -> None:
    file = draft.rng.choice([str(draft.victims / "file"), "/dev/zero", "absent", "../victims/file"])
    h5.create_dataset(name, array.shape, array.dtype, external=[(file, 0, array.nbytes)])


def _virtual(h5: Any, name: str, array: Any, draft: Draft) -> None:
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    source = draft.rng.choice([".", str(draft.victims / "file"), "absent.h5"])
    layout[:] = h5py.VirtualSource(source, "labels", array.shape, array.dtype)
    h5.create_virtual_dataset(name, layout)


def _huge(h5: Any, name: str, array: Any, draft: Draft) -> None:
    """Create a dataset with a huge shape and no storage."""
    shape = draft.rng.choice([(10**12,), (2**62,), (2**31, 2**31), (0, 2**60), (10**9,)])
    try:
        h5.create_dataset(name, shape, array.dtype, chunks=(1024,) if len(shape) == 1 else None)
    except (ValueError, OSError, OverflowError):  # HDF5 refuses to write some shapes
        h5.create_dataset(name, (10**9,), array.dtype, chunks=(1024,))


def _link(h5: Any, name: str, array: Any, draft: Draft) -> None:
    kinds = [h5py.SoftLink("/labels"), h5py.SoftLink(f"/{name}"), h5py.SoftLink("/absent")]
    kinds += [h5py.ExternalLink(str(draft.victims / "file"), "/x"), h5py.ExternalLink("/dev/zero", "/x")]
    kinds += [h5py.ExternalLink(draft.path.name, f"/{name}")]
    h5[name] = draft.rng.choice(kinds)


def _named_type(h5: Any, name: str, array: Any, draft: Draft) -> None:
    h5[name] = array.dtype


def _group(h5: Any, name: str, array: Any, draft: Draft) -> None:
    h5.create_group(name).create_dataset(name, data=array)


def _attributes(h5: Any, name: str, array: Any, draft: Draft) -> None:
    dataset = h5.create_dataset(name, data=array)
    for number in range(200):
        dataset.attrs[f"a{number}"] = "x" * 100


def _compact(h5: Any, name: str, array: Any, draft: Draft) -> None:
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    space, kind = h5py.h5s.create_simple(array.shape), h5py.h5t.py_create(array.dtype)
    h5py.h5d.create(h5.id, name.encode(), kind, space, properties).write(h5py.h5s.ALL, h5py.h5s.ALL, array)


LAYOUTS: dict[str, Callable[[Any, str, Any, Draft], Any]] = {
    "chunked": _chunked(),
    "gzip": _chunked(compression="gzip"),
    "shuffled": _chunked(shuffle=True, fletcher32=True),
    "scaled": _chunked(scaleoffset=0),
    "resizable": _chunked(maxshape=(None,)),
    "unwritten": lambda h5, name, array, draft: h5.create_dataset(name, array.shape, array.dtype),
    "external": _external,
    "virtual": _virtual,
    "huge": _huge,
    "link": _link,
    "named type": _named_type,
    "group": _group,
    "attributes": _attributes,
    "compact": _compact,
    "missing": lambda h5, name, array, draft: None,
}


def spoil_manifest(draft: Draft) -> str:
    return "manifest " + mutate_json(draft.rng, draft.manifest, draft.rng.choice(["", "", "splits", "rows"]))


def spoil_manifest_number(draft: Draft) -> str:
    """Change numbers that determine how much memory a reader allocates."""
    rng, manifest = draft.rng, draft.manifest
    if not isinstance(manifest, dict):
        return "no manifest"
    name = rng.choice(
        ["vocab_size", "max_length", "format", "classes", "class_counts", "rows", "shard rows", "everything"]
    )
    if name in ("vocab_size", "max_length", "format"):
        manifest[name] = rng.choice([hostile_value(rng, 100), 10**9, 10**12, 2, 1, 0])
    elif name == "classes":
        manifest["classes"] = rng.choice(
            [[], ["one"], ["a", "a"], [f"c{i}" for i in range(300)], [1, 2], "ab", None, {}]
        )
    elif name == "everything":
        draft.manifest = hostile_value(rng)
    else:
        where = draft.info if name == "shard rows" else manifest.get("splits", {}).get(draft.split, {})
        if isinstance(where, dict):
            key = {"shard rows": rng.choice(["rows", "tokens", "bytes", "sha256"])}.get(name, name)
            where[key] = hostile_value(rng, where.get(key))
    return f"manifest's {name}"


def spoil_shard_list(draft: Draft) -> str:
    """Let shard paths leave the folder, or list the same shard many times."""
    rng, victims = draft.rng, draft.victims
    try:
        shards = draft.manifest["splits"][draft.split]["shards"]
        kind = rng.choice(["path", "path", "path", "many", "splits", "none"])
        if kind == "path":
            name = shards[0]["file"]
            odd = [
                str(victims / "file"),
                "/dev/zero",
                "../victims/file",
                f"./{name}",
                f"x/../{name}",
                "",
                ".",
                "\x00",
                "a" * 300,
            ]
            shards[0]["file"] = rng.choice(
                [*odd, f"{name}/", "vocab.json", "manifest.json", "\ud800", name + "\x00", 7, None]
            )
        elif kind == "many":
            shards.extend([shards[0]] * rng.choice([1, 50, 3000]))
        elif kind == "splits":
            draft.manifest["splits"][rng.choice(["extra", "train", "../x", "\ud800"])] = draft.manifest["splits"][
                "valid"
            ]
        else:
            shards.clear()
    except (TypeError, KeyError, IndexError, AttributeError):
        return "no shards"
    return f"shards {kind}"


def spoil_vocabulary(draft: Draft) -> str:
    path = draft.folder / "vocab.json"
    if not path.is_file() or path.is_symlink() or path.stat().st_size > 1 << 20:
        return "no vocabulary"
    try:
        words = json.loads(path.read_bytes())["words"]
        path.write_bytes(mutate_words(draft.rng, list(words)))
    except (ValueError, TypeError, KeyError, RecursionError, IndexError):
        return "no vocabulary"
    return "vocabulary spoiled"


def spoil_bytes(draft: Draft) -> str:
    path = draft.rng.choice([draft.path, draft.path, draft.path, draft.folder / "vocab.json"])
    if not path.is_file() or path.is_symlink() or path.stat().st_size > 1 << 26:
        return "no file"
    path.write_bytes(mutate_bytes(draft.rng, path.read_bytes()))
    return f"bytes of {path.name}"


def spoil_file(draft: Draft) -> str:
    path = draft.rng.choice(
        [draft.path, draft.path, draft.folder / "vocab.json", draft.folder / "manifest.json", draft.path.parent]
    )
    return replace_file(draft.rng, path, draft.victims)


MUTATIONS: dict[Callable[[Draft], str], int] = {
    spoil_offsets: 5,
    spoil_numbers: 4,
    spoil_type: 3,
    spoil_shape: 3,
    spoil_layout: 4,
    spoil_manifest: 4,
    spoil_manifest_number: 3,
    spoil_shard_list: 3,
    spoil_vocabulary: 3,
    spoil_bytes: 4,
    spoil_file: 3,
}


def make_data(rng: random.Random, seeds: Seeds, folder: Path, victims: Path) -> list[str]:
    """Fill `folder` with a hostile copy of the good data; return descriptions of the changes."""
    draft = Draft(rng, seeds, folder, victims)
    chosen = rng.choices(list(MUTATIONS), list(MUTATIONS.values()), k=rng.choice([1, 1, 2, 3]))
    first, *others = sorted(dict.fromkeys(chosen), key=lambda spoil: spoil is spoil_file)
    told = [first(draft), *(_spoil_more(draft, spoil) for spoil in others)]
    draft.seal()
    return told


def _spoil_more(draft: Draft, spoil: Callable[[Draft], str]) -> str:
    """Apply another mutation to a damaged folder, unless the parts that it changes are gone."""
    try:
        return spoil(draft)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OSError) as error:
        return f"{spoil.__name__} was not possible any more ({error!r:.80})"
