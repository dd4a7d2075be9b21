"""The unfinished copy of a killed process is removed later; the copy of a running process is left alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import child_environment, python

from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data

# Copies two files, then prints a line and waits.
SCRIPT = """
import sys, time
from tenor.store import staging
fetch, fetched = staging._fetch, []
def slow(data, file, *rest):
    fetch(data, file, *rest)
    fetched.append(file)
    if len(fetched) == 2:
        print("copying", flush=True)
        time.sleep(60)
staging._fetch = slow
staging.stage_data(sys.argv[1], sys.argv[2])
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("staged")
    for seed in (1, 2):
        reviews = write_json_lines(folder / f"{seed}.jsonl", make_reviews(60, seed=seed))
        prepare([reviews], folder / f"data{seed}", PrepareSettings(workers=1))
    return [folder / "data1", folder / "data2"]


@contextmanager
def _copying(data: str, cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the middle of copying."""
    command = python("-c", SCRIPT, data, str(cache))
    with subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"copying\n"
            yield process
        finally:
            process.kill()


def _unfinished(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.is_dir() and path.name.startswith(".")}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_the_copy_of_a_killed_process_is_removed_and_a_running_copy_is_kept(
    folders: list[Path], tmp_path: Path, form: str
) -> None:
    cache = tmp_path / "cache"
    with _copying(form.format(folders[0]), cache) as process:
        mine = _unfinished(cache)
        assert mine
        other = stage_data(folders[1], cache)
        assert _unfinished(cache) == mine
        process.kill()
        process.wait()
    assert _unfinished(cache) == mine
    assert stage_data(folders[1], cache) == other  # removes leftovers even if nothing is copied
    assert not _unfinished(cache)
    verify_data(stage_data(folders[0], cache))
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 2
