"""The split `unlabelled` of prepared data from an attacker: the manifest and the shards are checked as strictly."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from helpers.corpora import make_reviews

from tenor.errors import StoreError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.store.atomic import canonical
from tenor.store.manifest import NO_LABEL, Manifest
from tenor.store.reader import open_split
from tenor.store.shard import Shard, write_shard
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data

Json = dict[str, Any]
TRAIN, UNLABELLED = "train/00000.h5", "unlabelled/00000.h5"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unlabelled")
    rows = [{"text": review.text, "rating": review.rating} for review in make_reviews(100)]
    rows += [{"text": f"nothing said {n}", "rating": None} for n in range(30)]
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepare([folder / "r.jsonl"], folder / "data", PrepareSettings(workers=1, unlabelled=True))
    return folder / "data"


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "data"))


def _rewrite(data: Path, change: Callable[[Json], object]) -> None:
    values = json.loads((data / "manifest.json").read_bytes())
    change(values)
    (data / "manifest.json").write_bytes(canonical(values))


def _forge(data: Path, file: str, change: Callable[[Json], object]) -> None:
    """Change the arrays of a shard, and make the manifest match the file."""
    with h5py.File(data / file) as h5:
        arrays = {name: h5[name][()] for name in ("tokens", "offsets", "labels")}
    change(arrays)
    write_shard(data, file, Shard(**arrays))
    image = (data / file).read_bytes()

    def seal(values: Json) -> None:
        [shard] = values["splits"][file.split("/", maxsplit=1)[0]]["shards"]
        shard.update({"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest()})

    _rewrite(data, seal)


def test_the_split_is_read_checked_and_copied(data: Path) -> None:
    manifest = verify_data(data)
    assert manifest.splits["unlabelled"].class_counts == ()
    for verify in (True, False):
        with open_split(data, "unlabelled", verify=verify) as split:
            tokens, lengths = split.gather(np.arange(len(split)))
            assert len(split) == 30 and lengths.tolist() == [3] * 30 and len(tokens) == 90
            assert split.labels.tolist() == [NO_LABEL] * 30
    copy = stage_data(data, data.parent / "cache")
    assert (copy / UNLABELLED).read_bytes() == (data / UNLABELLED).read_bytes()


def _label(place: int, label: int) -> Callable[[Json], object]:
    return lambda arrays: arrays["labels"].__setitem__(place, label)


@pytest.mark.parametrize(
    ("file", "change", "match", "always"),
    [
        (UNLABELLED, _label(0, 0), "an unlabelled row has a label", True),
        (UNLABELLED, _label(-1, 1), "an unlabelled row has a label", True),
        (UNLABELLED, _label(7, 254), "an unlabelled row has a label", True),
        (UNLABELLED, lambda a: a.update(labels=a["labels"][:0]), "'labels' has another type or length", True),
        (UNLABELLED, lambda a: a["offsets"].__setitem__(3, 1 << 40), "ends before it starts", True),
        (UNLABELLED, lambda a: a["tokens"].__setitem__(0, 65_000), "a token is not in the vocabulary", False),
        (TRAIN, _label(3, NO_LABEL), "a label is not one of the classes", True),
    ],
)
def test_a_shard_with_a_matching_hash_is_refused(
    data: Path, file: str, change: Callable[[Json], object], match: str, always: bool
) -> None:
    _forge(data, file, change)
    with pytest.raises(StoreError, match=match):
        verify_data(data)
    for verify in (True, False) if always else (True,):
        with pytest.raises(StoreError, match=match):
            open_split(data, file.split("/", maxsplit=1)[0], verify=verify)


def _exchange(values: Json) -> None:
    """Call training rows unlabelled and the other way round."""
    splits = values["splits"]
    for name in ("rows", "tokens", "shards"):
        splits["train"][name], splits["unlabelled"][name] = splits["unlabelled"][name], splits["train"][name]
    splits["train"]["class_counts"] = [splits["train"]["rows"], 0]


def test_splits_with_exchanged_shards_are_refused(data: Path) -> None:
    _rewrite(data, _exchange)
    for name, match in (
        ("train", "a label is not one of the classes"),
        ("unlabelled", "an unlabelled row has a label"),
    ):
        for verify in (True, False):
            with pytest.raises(StoreError, match=match):
                open_split(data, name, verify=verify)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m: m["splits"]["unlabelled"].update(class_counts=[30, 0]), "class counts of unlabelled do not fit"),
        (lambda m: m["splits"]["unlabelled"].update(class_counts=[0, 0]), "class counts of unlabelled do not fit"),
        (lambda m: m["splits"]["train"].update(class_counts=[]), "class counts of train do not fit"),
        (lambda m: m["splits"]["unlabelled"].update(rows=29), "rows of unlabelled do not add up"),
        (lambda m: m["splits"]["unlabelled"].update(rows=30.0), "rows of unlabelled do not add up"),
        (lambda m: m["splits"]["unlabelled"].update(rows=-1, shards=[]), "rows of unlabelled do not add up"),
        (lambda m: m["splits"]["unlabelled"].update(tokens=91), "tokens of unlabelled do not add up"),
        (lambda m: m["splits"]["unlabelled"]["shards"][0].update(rows=1 << 50), "is out of range"),
        (lambda m: m["splits"]["unlabelled"]["shards"][0].update(file=TRAIN), "a shard is listed twice"),
        (lambda m: m["splits"]["unlabelled"]["shards"][0].update(file="../a.h5"), "not inside the folder"),
        (lambda m: m["splits"].pop("unlabelled"), "the kept rows do not add up"),
        (lambda m: m["splits"].pop("test"), "the splits are not train, valid, test"),
        (lambda m: m["splits"].update(more=m["splits"].pop("unlabelled")), "the splits are not train, valid, test"),
        (lambda m: m["splits"].update(unlabelled=7), "manifest is damaged"),
        (lambda m: m["rows"].update(kept=100, read=100), "the kept rows do not add up"),
    ],
)
def test_a_manifest_that_prepare_would_not_write(data: Path, change: Callable[[Json], object], match: str) -> None:
    _rewrite(data, change)
    with pytest.raises(StoreError, match=match) as caught:
        Manifest.load(data)
    assert len(str(caught.value).splitlines()) == 1
