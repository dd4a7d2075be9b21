"""Damage to a shard is found before use, and the error names the file."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from helpers.corpora import make_reviews, write_json_lines

from tenor.errors import StoreError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.store.atomic import canonical
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    prepare([write_json_lines(folder / "r.jsonl", make_reviews(200))], folder / "data", PrepareSettings(workers=1))
    return folder / "data"


def _shards(data: Path) -> list[tuple[str, str]]:
    manifest = Manifest.load(data)
    return [(name, shard.file) for name, info in manifest.splits.items() for shard in info.shards]


def test_a_thousand_flipped_bytes(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "d")
    rng = random.Random(0)
    for number in range(1000):
        split, file = rng.choice(_shards(data)) if number % 50 == 0 else (split, file)  # noqa: F821
        path = tmp_path / "d" / file
        whole = path.read_bytes()
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        with pytest.raises(StoreError, match=file):
            open_split(tmp_path / "d", split)
        path.write_bytes(whole)
    open_split(tmp_path / "d", "train").close()


def test_a_hundred_truncations(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "d")
    rng = random.Random(1)
    for number in range(100):
        split, file = _shards(data)[number % 3]
        path = tmp_path / "d" / file
        whole = path.read_bytes()
        path.write_bytes(whole[: rng.randrange(len(whole))])
        with pytest.raises(StoreError, match=file):
            open_split(tmp_path / "d", split)
        with pytest.raises(StoreError, match=file):
            verify_data(tmp_path / "d")
        path.write_bytes(whole)


def test_an_open_split_has_one_descriptor_per_shard(data: Path) -> None:
    with open_split(data, "train") as split:
        handles = [handle.resolve() for handle in Path("/proc/self/fd").iterdir()]
        assert handles.count(data / "train" / "00000.h5") == 1
        assert len(split.gather(np.arange(len(split)))[1]) == len(split) > 0


def test_a_missing_shard_or_changed_vocabulary_is_named(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "d")
    (tmp_path / "d" / "vocab.json").write_bytes((data / "vocab.json").read_bytes() + b" ")
    with pytest.raises(StoreError, match=r"vocab\.json"):
        verify_data(tmp_path / "d")
    shutil.copy(data / "vocab.json", tmp_path / "d" / "vocab.json")
    (tmp_path / "d" / "valid" / "00000.h5").unlink()
    with pytest.raises(StoreError, match=r"valid/00000\.h5: shard is missing"):
        verify_data(tmp_path / "d")


def test_a_changed_manifest_is_refused(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "d")
    path = tmp_path / "d" / "manifest.json"
    for change in (b"", b"{}", b"[", path.read_bytes().replace(b'"format": 1', b'"format": 9')):
        path.write_bytes(change)
        with pytest.raises(StoreError, match="manifest"):
            Manifest.load(tmp_path / "d")


@pytest.mark.parametrize("file", ["{outside}/evil.h5", "../evil.h5", "train/../../evil.h5", 7])
def test_a_shard_outside_the_folder_is_refused(data: Path, tmp_path: Path, file: str | int) -> None:
    shutil.copytree(data, tmp_path / "d")
    shutil.copy(data / "train" / "00000.h5", tmp_path / "evil.h5")
    named = file.format(outside=tmp_path) if isinstance(file, str) else file
    values = json.loads((data / "manifest.json").read_bytes())
    values["splits"]["train"]["shards"][0]["file"] = named
    (tmp_path / "d" / "manifest.json").write_bytes(canonical(values))
    with pytest.raises(StoreError, match=r"manifest\.json: manifest is damaged"):
        stage_data(tmp_path / "d", tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.h5"))


def test_staging_copies_once_verifies_and_repairs(data: Path, tmp_path: Path) -> None:
    first = stage_data(data, tmp_path / "cache")
    assert Manifest.load(first) == Manifest.load(data)
    inode = (first / "train" / "00000.h5").stat().st_ino
    assert stage_data(f"file://{data}", tmp_path / "cache") == first
    assert (first / "train" / "00000.h5").stat().st_ino == inode
    (first / "train" / "00000.h5").write_bytes(b"damaged")
    verify_data(stage_data(data, tmp_path / "cache"))
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith(".") and path.suffix != ".lock"]


def test_staging_refuses_a_damaged_original(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "d")
    (tmp_path / "d" / "train" / "00000.h5").write_bytes(b"damaged")
    with pytest.raises(StoreError, match=r"train/00000\.h5"):
        stage_data(tmp_path / "d", tmp_path / "cache")
    with pytest.raises(StoreError, match="is not prepared data"):
        stage_data(tmp_path, tmp_path / "cache")


def test_a_shard_with_one_changed_token_is_found_by_its_hash(data: Path, tmp_path: Path) -> None:
    """Everything except the hash matches."""
    shutil.copytree(data, tmp_path / "d")
    with h5py.File(tmp_path / "d" / "train" / "00000.h5", "r+") as h5:
        h5["tokens"][0] = 3 - min(int(h5["tokens"][0]), 2)
    with pytest.raises(StoreError, match=r"train/00000\.h5: shard does not match its hash in the manifest"):
        verify_data(tmp_path / "d")
