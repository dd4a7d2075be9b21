"""Run the command line as a person would: a real process, its exit code and what it printed."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from helpers.processes import child_environment, kill_group, python


@dataclasses.dataclass(frozen=True)
class Finished:
    """A command that has run."""

    args: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON object that `--json` promises."""
        return json.loads(self.stdout)

    def ok(self) -> Finished:
        """Itself, or a failure that shows what the command said."""
        assert self.code == 0, f"tenor {' '.join(self.args)} gave {self.code}:\n{self.stderr}\n{self.stdout}"
        return self

    def failed(self, code: int = 1) -> str:
        """The one error line of a command that must fail with `code`: no traceback, nothing on standard output."""
        assert self.code == code, f"tenor {' '.join(self.args)} gave {self.code}, not {code}:\n{self.stderr}"
        assert "Traceback" not in self.stderr
        assert self.stdout == ""
        lines = [line for line in self.stderr.splitlines() if line.startswith("tenor: ")]
        assert len(lines) == 1, f"not one error line but {len(lines)}:\n{self.stderr}"
        return lines[0]


def run_tenor(
    *args: str | os.PathLike[str],
    input: str | bytes | None = None,
    timeout: float = 120.0,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    python_options: tuple[str, ...] = (),
) -> Finished:
    """Run `python -m tenor ARGS` to its end; past `timeout` it and all it started are killed."""
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
