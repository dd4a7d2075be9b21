"""Prepared data from an attacker, with matching hashes: everything that the code relies on is checked."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.training import SMALL

import tenor
from tenor.errors import StoreError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages.word_ids import count_rows, translate_rows
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.preparation.tokeniser.words import WordTable, word_hashes
from tenor.store.atomic import canonical
from tenor.store.manifest import Manifest
from tenor.store.ragged import copy_rows
from tenor.store.reader import open_split
from tenor.store.shard import Shard, write_shard
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data
from tenor.training.tasks.reviews import Reviews

SHARD = "train/00000.h5"
Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strangers")
    prepare([write_json_lines(folder / "r.jsonl", make_reviews(200))], folder / "data", PrepareSettings(workers=1))
    return folder / "data"


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "data"))


def _arrays(data: Path) -> Arrays:
    with h5py.File(data / SHARD) as h5:
        return {name: h5[name][()] for name in ("tokens", "offsets", "labels")}


def _seal(data: Path, **changes: Any) -> None:
    """Make the manifest match the file of the shard, except for the given changes."""
    values = json.loads((data / "manifest.json").read_bytes())
    image = (data / SHARD).read_bytes()
    [shard] = values["splits"]["train"]["shards"]
    shard.update({"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest(), **changes})
    (data / "manifest.json").write_bytes(canonical(values))


def _refused(data: Path, match: str, *, always: bool = True) -> None:
    """The data is refused when a run verifies it and, if `always`, whenever a split is opened."""
    with pytest.raises(StoreError, match=match) as caught:
        verify_data(data)
    assert len(str(caught.value).splitlines()) == 1
    for verify in (True, False) if always else (True,):
        with pytest.raises(StoreError, match=match):
            open_split(data, "train", verify=verify)


def _set(name: str, place: int, value: int) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name][place] = value

    return change


def _falling(arrays: Arrays) -> None:
    arrays["offsets"][1:-1] = arrays["offsets"][-1]
    arrays["offsets"][2] = 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_falling, "a row has no tokens or ends before it starts"),
        (_set("offsets", 5, -(1 << 62)), "a row has no tokens or ends before it starts"),
        (_set("offsets", 5, 1 << 62), "a row has no tokens or ends before it starts"),
        (_set("offsets", 0, 1), "do not cover the tokens"),
        (_set("offsets", -1, 1 << 40), "do not cover the tokens"),
        (lambda arrays: arrays.update(offsets=np.r_[0, arrays["offsets"][:-1]]), "do not cover the tokens"),
        (_set("labels", 3, 2), "a label is not one of the classes"),
        (lambda arrays: arrays.update(tokens=arrays["tokens"].astype(np.int32)), "'tokens' has another type"),
        (lambda arrays: arrays.update(tokens=arrays["tokens"].astype(">u2")), "'tokens' has another type"),
        (lambda arrays: arrays.update(offsets=arrays["offsets"].astype(np.uint64)), "'offsets' has another type"),
        (lambda arrays: arrays.update(offsets=arrays["offsets"].astype(np.float64)), "'offsets' has another type"),
        (lambda arrays: arrays.update(labels=arrays["labels"].astype(np.int8)), "'labels' has another type"),
        (lambda arrays: arrays.update(labels=arrays["labels"][:-1]), "'labels' has another type or length"),
        (lambda arrays: arrays.update(tokens=arrays["tokens"].reshape(1, -1)), "'tokens' has another type or length"),
    ],
)
def test_a_damaged_shard_with_a_matching_hash_is_refused(
    data: Path, change: Callable[[Arrays], None], match: str
) -> None:
    arrays = _arrays(data)
    told = {"rows": len(arrays["labels"]), "tokens": len(arrays["tokens"])}
    change(arrays)
    write_shard(data, SHARD, Shard(**arrays))
    _seal(data, **told)
    _refused(data, match)


def test_descending_offsets_are_refused(data: Path) -> None:
    """The smallest change that would make the copy of a batch write beyond its end."""
    arrays = _arrays(data)
    _falling(arrays)
    write_shard(data, SHARD, Shard(**arrays))
    _seal(data)
    _refused(data, r"train/00000\.h5: shard cannot be used: a row has no tokens or ends before it starts")


def test_a_row_longer_than_the_manifest_says(data: Path) -> None:
    values = json.loads((data / "manifest.json").read_bytes())
    values["max_length"] = int(np.diff(_arrays(data)["offsets"]).max())
    (data / "manifest.json").write_bytes(canonical(values))
    verify_data(data)
    values["max_length"] -= 1
    (data / "manifest.json").write_bytes(canonical(values))
    _refused(data, "a row is longer than max_length")


def test_a_token_outside_the_vocabulary(data: Path) -> None:
    arrays, size = _arrays(data), Manifest.load(data).vocab_size
    arrays["tokens"][-1] = size - 1
    write_shard(data, SHARD, Shard(**arrays))
    _seal(data)
    verify_data(data)
    arrays["tokens"][-1] = size
    write_shard(data, SHARD, Shard(**arrays))
    _seal(data)
    _refused(data, "a token is not in the vocabulary", always=False)


def test_a_negative_token_of_a_large_vocabulary(data: Path) -> None:
    values = json.loads((data / "manifest.json").read_bytes())
    values["vocab_size"] = 70_000
    (data / "manifest.json").write_bytes(canonical(values))
    for file in ("valid/00000.h5", "test/00000.h5"):
        shutil.copy(data / file, data / SHARD)  # its type no longer fits the size of the vocabulary
    arrays = _arrays(data)
    arrays["tokens"] = arrays["tokens"].astype(np.int32)
    arrays["tokens"][0] = -1
    info = write_shard(data, SHARD, Shard(**arrays))
    counts = np.bincount(arrays["labels"], minlength=2).tolist()
    shard = {"file": SHARD, "rows": info.rows, "tokens": info.tokens, "bytes": info.bytes, "sha256": info.sha256}
    empty = {"rows": 0, "tokens": 0, "class_counts": [0, 0], "shards": []}
    full = {"rows": info.rows, "tokens": info.tokens, "class_counts": counts, "shards": [shard]}
    values["splits"] = {"train": full, "valid": empty, "test": empty}
    values["rows"] = {"read": info.rows, "kept": info.rows, "duplicates": 0, "dropped": {}, "rejected": {}}
    (data / "manifest.json").write_bytes(canonical(values))
    _refused(data, "a token is not in the vocabulary", always=False)


def test_class_counts_that_differ_from_the_labels(data: Path) -> None:
    arrays = _arrays(data)
    arrays["labels"] = 1 - arrays["labels"]
    arrays["labels"][:2] = 0
    write_shard(data, SHARD, Shard(**arrays))
    _seal(data)
    _refused(data, r"manifest\.json: the shards of train have \[\d+, \d+\] rows per class", always=False)


def _rewrite(data: Path, write: Callable[[h5py.File, Arrays], None]) -> None:
    arrays = _arrays(data)
    with h5py.File(data / SHARD, "w", alignment_threshold=1, alignment_interval=64) as h5:
        write(h5, arrays)
        for name in arrays:
            if h5.get(name, getlink=True) is None:
                h5.create_dataset(name, data=arrays[name])
    _seal(data)


def _chunked(h5: h5py.File, arrays: Arrays) -> None:
    h5.create_dataset("tokens", data=arrays["tokens"], chunks=(64,), compression="gzip")


def _external(h5: h5py.File, arrays: Arrays) -> None:
    tokens = arrays["tokens"]
    h5.create_dataset("tokens", tokens.shape, tokens.dtype, external=[("/etc/passwd", 0, tokens.nbytes)])


def _virtual(h5: h5py.File, arrays: Arrays) -> None:
    layout = h5py.VirtualLayout(arrays["tokens"].shape, arrays["tokens"].dtype)
    layout[:] = h5py.VirtualSource("elsewhere.h5", "tokens", arrays["tokens"].shape)
    h5.create_virtual_dataset("tokens", layout)


def _soft(h5: h5py.File, arrays: Arrays) -> None:
    h5["real"] = arrays["tokens"]
    h5["tokens"] = h5py.SoftLink("/real")


def _outer(h5: h5py.File, arrays: Arrays) -> None:
    h5["tokens"] = h5py.ExternalLink("elsewhere.h5", "/tokens")


def _group(h5: h5py.File, arrays: Arrays) -> None:
    h5.create_group("tokens")


def _not_written(h5: h5py.File, arrays: Arrays) -> None:
    h5.create_dataset("tokens", arrays["tokens"].shape, arrays["tokens"].dtype)


@pytest.mark.parametrize(
    ("write", "match"),
    [
        (_chunked, "'tokens' is not contiguous"),
        (_external, "'tokens' is not contiguous"),
        (_virtual, "'tokens' is not contiguous"),
        (_soft, "'tokens' is missing or a link"),
        (_outer, "'tokens' is missing or a link"),
        (_group, "'tokens' is not an array"),
        (_not_written, "'tokens' is outside the file"),
    ],
)
def test_an_array_outside_the_file_or_not_contiguous(
    data: Path, write: Callable[[h5py.File, Arrays], None], match: str
) -> None:
    _rewrite(data, write)
    _refused(data, match)


def test_an_array_beyond_the_end_of_the_file(data: Path) -> None:
    """The position of the array is a number in the file; older HDF5 formats have no checksum, so it can be changed."""
    _rewrite(data, lambda h5, arrays: None)
    with h5py.File(data / SHARD) as h5:
        at = h5["labels"].id.get_offset()
    image = (data / SHARD).read_bytes()
    place = at.to_bytes(8, "little")
    assert image.count(place) == 1
    (data / SHARD).write_bytes(image.replace(place, (len(image) - 8).to_bytes(8, "little")))
    _seal(data)
    _refused(data, "shard cannot be used")  # HDF5 itself may find it first


@pytest.mark.parametrize("verify", [True, False])
def test_a_shard_that_is_a_device_a_pipe_or_a_link(data: Path, verify: bool) -> None:
    real = data / "real.h5"
    (data / SHARD).rename(real)
    for make in (
        lambda: (data / SHARD).symlink_to("/dev/zero"),
        lambda: (data / SHARD).symlink_to("../real.h5"),
        lambda: os.mkfifo(data / SHARD),
        (data / SHARD).mkdir,
    ):
        make()
        with pytest.raises(StoreError, match=r"is a symbolic link|is not an ordinary file"):
            open_split(data, "train", verify=verify)
        with pytest.raises(StoreError, match=r"is a symbolic link|is not an ordinary file"):
            stage_data(data, data / "cache")
        (data / SHARD).rmdir() if (data / SHARD).is_dir() else (data / SHARD).unlink()


def test_a_vocabulary_or_manifest_that_is_a_device(data: Path) -> None:
    for name in ("vocab.json", "manifest.json"):
        shutil.copy(data / name, data / "kept")
        for target in ("/dev/zero", "/dev/stdin", "kept"):
            (data / name).unlink()
            (data / name).symlink_to(target)
            with pytest.raises(StoreError, match=rf"{name}: is a symbolic link"):
                verify_data(data)
        (data / name).unlink()
        shutil.copy(data / "kept", data / name)
    verify_data(data)


NUMBERS = [-1, True, 1.0, 1 << 50, 1 << 62, "7", None, [7]]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("vocab_size",), [*NUMBERS, 1, 1 << 31]),
        (("max_length",), [*NUMBERS, 0]),
        (("vocab_sha256",), ["", "x" * 64, 7]),
        (("classes",), [[], ["a"], ["a", "a"], ["a", 7], "ab", ["a", ["b"]], [str(n) for n in range(300)]]),
        (("tokeniser",), [[], 7]),
        (("labels",), [[], 7]),
        (("rows",), [{}, 7]),
        (("rows", "read"), NUMBERS),
        (("rows", "kept"), [*NUMBERS, 0]),
        (("rows", "rejected"), [7, {"empty": -1}, {"empty": 10**9}]),
        (("splits",), [{}, [], {"train": 7}]),
        (("splits", "train", "rows"), [*NUMBERS, 0]),
        (("splits", "train", "tokens"), [*NUMBERS, 0]),
        (("splits", "train", "class_counts"), [[], [1], [1, 1], [-1, 161], 7]),
        (("splits", "train", "shards"), [[], 7, [7], [{}]]),
        (("splits", "train", "shards", 0, "rows"), [*NUMBERS, 0]),
        (("splits", "train", "shards", 0, "tokens"), [*NUMBERS, 0]),
        (("splits", "train", "shards", 0, "bytes"), NUMBERS),
        (("splits", "train", "shards", 0, "sha256"), ["", 7]),
        (
            ("splits", "train", "shards", 0, "file"),
            ["", "/a.h5", "../a.h5", "vocab.json", "valid/00000.h5", "a\0.h5", 7],
        ),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_manifest_that_prepare_would_not_write(data: Path, path: tuple[Any, ...], values: list[Any]) -> None:
    file = data / "manifest.json"
    written = file.read_bytes()
    for value in values:
        manifest = place = json.loads(written)
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        file.write_bytes(canonical(manifest))
        with pytest.raises(StoreError, match=r"manifest\.json: ") as caught:
            Manifest.load(data)
        assert len(str(caught.value).splitlines()) == 1, value


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": ' + "9" * 400 + "}", '{"format": NaN}', '{"format": "\\ud800"}', "[]", "null"]
)
def test_a_manifest_of_unusual_json(data: Path, text: str) -> None:
    (data / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match=r"manifest\.json: is not JSON that can be trusted"):
        Manifest.load(data)


def test_a_manifest_of_a_terabyte(data: Path) -> None:
    with (data / "manifest.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="more than the 16,777,216 bytes"):
        Manifest.load(data)


@pytest.mark.parametrize(
    "text", ["[]", '{"words": 7}', '{"words": [7]}', '{"words": ["a", "a"]}', '{"words": [""]}', "{}"]
)
def test_a_file_that_is_not_a_vocabulary(tmp_path: Path, text: str) -> None:
    (tmp_path / "vocab.json").write_text(text)
    with pytest.raises(StoreError, match=r"is not a vocabulary file|is not JSON that can be trusted"):
        Vocabulary.load(tmp_path / "vocab.json")


def test_a_vocabulary_with_fewer_words_than_the_tokens_need(data: Path, tmp_path: Path) -> None:
    words = Vocabulary.load(data / "vocab.json").words
    (data / "vocab.json").write_bytes(Vocabulary(words[:-5]).to_bytes())
    values = json.loads((data / "manifest.json").read_bytes())
    values["vocab_sha256"] = Vocabulary(words[:-5]).sha256
    (data / "manifest.json").write_bytes(canonical(values))
    told = rf"has {len(words) - 3} entries, and the manifest says {len(words) + 2}"
    with pytest.raises(StoreError, match=told):
        Reviews(data, SMALL)
    with pytest.raises(StoreError, match=told):
        tenor.embed(data, tmp_path / "vectors")


def test_a_vocabulary_with_a_word_that_no_tokeniser_makes(data: Path) -> None:
    words = Vocabulary.load(data / "vocab.json").words
    (data / "vocab.json").write_bytes(Vocabulary([*words[:-1], "long" * 1000]).to_bytes())
    values = json.loads((data / "manifest.json").read_bytes())
    values["vocab_sha256"] = Vocabulary([*words[:-1], "long" * 1000]).sha256
    (data / "manifest.json").write_bytes(canonical(values))
    with pytest.raises(StoreError, match="has a word of 4,000 characters, and a word has at most 64 bytes"):
        Reviews(data, SMALL)


def _numbers(*values: int) -> Any:
    return np.array(values, np.int64)


# Rows of three numbers from an array of ten into an array of ten.
OUTSIDE = [
    (-1, 3, 0),
    (8, 3, 0),
    (0, -1, 0),
    (0, 3, -1),
    (0, 3, 8),
    (0, 11, 0),
    ((1 << 63) - 1, 3, 0),
    (0, 3, (1 << 63) - 1),
]


@pytest.mark.parametrize(("start", "length", "place"), OUTSIDE)
def test_compiled_loops_stay_inside_their_arrays(start: int, length: int, place: int) -> None:
    ten = np.arange(10)
    inside = _numbers(7), _numbers(3), _numbers(0)
    out = np.full(10, -1)
    copy_rows(ten, *inside, out)
    assert out.tolist() == [7, 8, 9] + [-1] * 7
    translate_rows(ten, ten[::-1].copy(), *inside, out)
    assert out.tolist() == [2, 1, 0] + [-1] * 7
    row = _numbers(start), _numbers(length), _numbers(place)
    with pytest.raises(IndexError):
        copy_rows(ten, *row, out)
    with pytest.raises(IndexError):
        translate_rows(ten, ten, *row, out)
    if place == 0:
        with pytest.raises(IndexError):
            count_rows(ten, *row[:2], np.ones(1, np.bool_), np.zeros(10, np.int64))
    assert out.tolist() == [2, 1, 0] + [-1] * 7


@pytest.mark.parametrize("word", [-1, 10, 1 << 40])
def test_compiled_loops_look_up_words_inside_their_table(word: int) -> None:
    words, one, none = _numbers(3, word), np.ones(1, np.bool_), _numbers(0)
    counts = np.zeros(10, np.int64)
    with pytest.raises(IndexError):
        count_rows(words, none, _numbers(2), one, counts)
    with pytest.raises(IndexError):
        translate_rows(words, counts, none, _numbers(2), none, np.zeros(2, np.int64))
    with pytest.raises(IndexError):
        copy_rows(words, _numbers(0, 0), _numbers(1), _numbers(0, 0), counts)


@pytest.mark.parametrize("starts", [(0, 3, 2, 6), (-1, 3, 6), (0, 3, 7), (0, 1 << 62, 6)])
def test_words_stay_inside_their_bytes(starts: tuple[int, ...]) -> None:
    data = np.frombuffer(b"abcdef", np.uint8)
    with pytest.raises(IndexError):
        word_hashes(data, _numbers(*starts))
    with pytest.raises(IndexError):
        WordTable().find(data, _numbers(*starts))


def test_a_sparse_vocabulary_is_refused_before_it_is_hashed(data: Path) -> None:
    os.truncate(data / "vocab.json", 1 << 40)
    with pytest.raises(StoreError, match="more than the 268,435,456 bytes allowed for a vocabulary"):
        verify_data(data)
