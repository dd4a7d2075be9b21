"""TOML files of strangers: read like tomllib, or refused in one line without reading or computing for long."""

from __future__ import annotations

import os
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from tenor.errors import UsageError
from tenor.toml import MAX_BYTES, read_toml

TEXT = 'a = 1.5\nb = "x"\n[t]\nc = [1, 2, -9223372036854775807]\n'


def test_a_file_is_read_as_tomllib_does(tmp_path: Path) -> None:
    (file := tmp_path / "a.toml").write_text(TEXT, "utf-8")
    (tmp_path / "link.toml").symlink_to(file)
    assert read_toml(file) == read_toml(tmp_path / "link.toml") == tomllib.loads(TEXT)
    assert read_toml(file, Decimal)["a"] == Decimal("1.5")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a=" * 3000 + "1" + "}" * 3000,
        ".".join("a" * 50_000) + " = 1",
        "x = " + "9" * 5000,
        "x = " + "9" * 400,
        "[[t]]\nx = [0xffffffffffffffff]",
        "= 1",
        "x = 1\nx = 2",
        "x = '\udc80'",
        "x = 1 # " + "." * MAX_BYTES,
    ],
)
def test_what_is_not_plain_toml_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "a.toml").write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(UsageError, match=r"not valid TOML|bytes allowed") as refused:
        read_toml(file)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_devices_pipes_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "."):
        with pytest.raises(UsageError, match="not an ordinary file"):
            read_toml(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_toml(tmp_path / "none")
