"""Where the token comes from, and when one is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenor.errors import UsageError
from tenor.serving.settings import ServeSettings
from tenor.serving.token import read_token

TOKEN = "0123456789abcdef"


def test_the_file_overrides_the_variable_and_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(TOKEN + "\n")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for name in ("secret", "link"):
        settings = ServeSettings(token_file=str(tmp_path / name))
        assert read_token(settings, {"TENOR_TOKEN": "another-token-of-some-length"}) == TOKEN
    assert read_token(ServeSettings(), {"TENOR_TOKEN": TOKEN}) == TOKEN
    assert read_token(ServeSettings(), {}) is None


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "with some spaces in it", "é" * 20, "a" * 15 + "\n" + "b"])
def test_an_unusable_token_is_refused_and_not_shown(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    with pytest.raises(UsageError, match="at least 16 printable") as error:
        read_token(ServeSettings(token_file=str(file)), {})
    assert str(file) in str(error.value) and (not token or token not in str(error.value))
    with pytest.raises(UsageError, match="TENOR_TOKEN"):
        read_token(ServeSettings(), {"TENOR_TOKEN": token})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_token(ServeSettings(token_file=str(tmp_path / "none")), {})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.org", ""])
def test_other_machines_need_a_token_unless_told_otherwise(host: str) -> None:
    with pytest.raises(UsageError, match="reachable from other machines"):
        read_token(ServeSettings(host=host), {})
    assert read_token(ServeSettings(host=host), {"TENOR_TOKEN": TOKEN}) == TOKEN
    assert read_token(ServeSettings(host=host, without_token=True), {}) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert read_token(ServeSettings(host=host), {}) is None


@pytest.mark.parametrize(
    "options",
    [
        {"port": 70000},
        {"batch_size": 0},
        {"max_wait_ms": -1},
        {"max_texts": 10, "queue_size": 5},
        {"reload_seconds": -1},
    ],
)
def test_wrong_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        ServeSettings(**options)  # type: ignore[arg-type]
