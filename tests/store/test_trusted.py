"""Small files from untrusted sources: no link is followed, nothing blocks, and no more than the limit is read."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from tenor.errors import RunError, StoreError
from tenor.store.trusted import CONTAINERS, DEPTH, parse_json, read_bytes, read_json

LIMIT = 10_000


def test_an_ordinary_file_is_read_completely(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text('{"a": [1, -2.5, "\\ud83d\\ude00", null, true], "b": 9223372036854775807}', "utf-8")
    assert read_bytes(file, file.stat().st_size, StoreError) == file.read_bytes()
    assert read_json(file, LIMIT, StoreError) == {"a": [1, -2.5, "\U0001f600", None, True], "b": (1 << 63) - 1}


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json", LIMIT, StoreError)


def test_anything_but_an_ordinary_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("{}")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(tmp_path, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/socket")  # the name of a socket must be short
        os.close(here)
    for path in (*(tmp_path / name for name in ("link", "zero", "pipe", "socket")), tmp_path, Path("/dev/zero")):
        with pytest.raises(RunError, match=f"{path.name}: is (a symbolic link|not an ordinary file)"):
            read_bytes(path, LIMIT, RunError)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="large: has more than the 10,000 bytes"):
        read_bytes(tmp_path / "large", LIMIT, StoreError)


def test_a_file_that_reports_no_size_is_limited_too() -> None:
    with pytest.raises(StoreError, match="more than the 10 bytes"):  # files in /proc report no size
        read_bytes(Path("/proc/self/maps"), 10, StoreError)
    assert read_bytes(Path("/proc/self/cmdline"), 1 << 20, StoreError) == Path("/proc/self/cmdline").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 9223372036854775808}',
        '{"a": ' + "9" * 400 + "}",
        '{"a": ' + "9" * 5000 + "}",
        '{"a": "\\ud800"}',
        '{"\\udcff": 1}',
        '{"a": ' + "[" * DEPTH + "]" * DEPTH + "}",
        '{"a": ' * 1500,
        "[" * 9000,
        '{"a": "\xff"}'.encode("latin-1"),
    ],
)
def test_json_that_is_not_strict_is_refused_with_a_one_line_error(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "f.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StoreError, match=r"f\.json: is not JSON that can be trusted: ") as caught:
        read_json(tmp_path / "f.json", LIMIT, StoreError)
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 300


@pytest.mark.parametrize("data", [bytes(16 << 20), b'{"a": [' + b"{}," * (5 << 20) + b"{}]}"], ids=["zeros", "objects"])
def test_json_that_would_need_many_times_its_size_is_refused(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=r"not an object|too many lists and objects"):
            parse_json(data, Path("f.json"), StoreError)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_sparse_file_within_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "f.json").touch()
    os.truncate(tmp_path / "f.json", 256 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match=r"f\.json: is not JSON that can be trusted: it is not an object"):
            read_json(tmp_path / "f.json", 256 << 20, StoreError)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_many_lists_and_objects_are_accepted_up_to_the_limit() -> None:
    def text(lists: int) -> bytes:
        return b' {"a": [' + b"[]," * lists + b"0]}"

    assert len(parse_json(text(CONTAINERS - 2), Path("f.json"), StoreError)["a"]) == CONTAINERS - 1
    with pytest.raises(StoreError, match="too many"):
        parse_json(text(CONTAINERS - 1), Path("f.json"), StoreError)


def test_surrogates_of_file_names_are_accepted_if_allowed(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"inputs": ["r\\udcff"]}')
    assert read_json(tmp_path / "f.json", LIMIT, StoreError, file_names=True) == {"inputs": [os.fsdecode(b"r\xff")]}
    (tmp_path / "f.json").write_text('{"inputs": ["r\\ud8ff"]}')
    with pytest.raises(StoreError, match="lone surrogate"):
        read_json(tmp_path / "f.json", LIMIT, StoreError, file_names=True)
