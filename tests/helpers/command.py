"""Run the `tenor` command, in a real process or in this one, and return its exit code and output."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import child_environment, kept_handlers, kill_group, python

from tenor.cli import build_app


@dataclasses.dataclass(frozen=True)
class Finished:
    """The exit code and output of a finished command."""

    args: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output, parsed as the single JSON object that `--json` promises."""
        return json.loads(self.stdout)

    def ok(self) -> Finished:
        """Return `self` if the exit code is 0; otherwise fail with the command's output."""
        assert self.code == 0, f"tenor {' '.join(self.args)} gave {self.code}:\n{self.stderr}\n{self.stdout}"
        return self

    def failed(self, code: int = 1) -> str:
        """Return the only error line of a command that must fail with `code`.

        A traceback, anything on standard output, or more than one error line fails the test.
        """
        assert self.code == code, f"tenor {' '.join(self.args)} gave {self.code}, not {code}:\n{self.stderr}"
        assert "Traceback" not in self.stderr
        assert self.stdout == ""
        lines = [line for line in self.stderr.splitlines() if line.startswith("tenor: ")]
        assert len(lines) == 1, f"expected one error line, found {len(lines)}:\n{self.stderr}"
        return lines[0]


def run_tenor(
    *args: str | os.PathLike[str],
    input: str | bytes | None = None,
    timeout: float = 120.0,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    python_options: tuple[str, ...] = (),
) -> Finished:
    """Run `python -m tenor ARGS` to its end; after `timeout` seconds, kill the command and everything it started."""
    words = tuple(os.fspath(arg) for arg in args)
    process = subprocess.Popen(
        python(*python_options, "-m", "tenor", *words),
        env=child_environment(**(env or {})),
        cwd=cwd,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(input.encode() if isinstance(input, str) else input, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        kill_group(process)
        said = process.communicate()[1].decode("utf-8", "replace")
        raise AssertionError(f"tenor {' '.join(words)} was still running after {timeout:g} s:\n{said}") from error
    assert not kill_group(process), f"tenor {' '.join(words)} left processes behind"
    return Finished(words, process.returncode, stdout.decode("utf-8"), stderr.decode("utf-8", "replace"))


def call_tenor(*args: str | os.PathLike[str]) -> Finished:
    """Run `tenor ARGS` in this process, which saves the start of another: for wrong usage and other quick commands."""
    words = tuple(os.fspath(arg) for arg in args)
    out, errors = io.StringIO(), io.StringIO()
    quiet = (contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors))
    with kept_handlers(), quiet[0], quiet[1], pytest.raises(SystemExit) as ended:
        build_app(words[:1])(list(words), prog_name="tenor")
    code = ended.value.code
    return Finished(words, code if isinstance(code, int) else int(code is not None), out.getvalue(), errors.getvalue())
