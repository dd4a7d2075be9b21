"""Every shell block of the README, the quickstart and the how-to pages runs, on small data, exactly as it is printed.

A block is preceded by `<!-- not run: reason -->` if it cannot run on one machine; `NOT_RUN` lists all of them. Blocks
behind `<!-- soak: reason -->` and those of the quickstart run in `make soak` only. The options of every command are
parsed and checked in any case.
"""

from __future__ import annotations

import fcntl
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from helpers.corpora import make_reviews, write_csv, write_json_lines
from helpers.mpi import MPI_VARIABLES
from helpers.processes import child_environment, kill_group

from tenor.cli import build_app
from tenor.cli import command as command_line

DOCS = Path(__file__).resolve().parent.parent / "docs"
README = DOCS.parent / "README.md"
QUICKSTART = DOCS / "quickstart.md"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
NOT_RUN = {
    "README.md": ["installs packages"],
    "quickstart.md": ["installs packages"],
    "prepare-on-a-cluster.md": ["needs several hosts", "needs a Spark cluster"],
    "serve.md": [
        "installs packages",
        "installs packages",
        "runs until it is stopped",
        "opens a port to other machines",
        "needs systemd",
        "needs Docker",
        "needs Docker",
    ],
    "train-on-a-cluster.md": ["needs two hosts", "needs SLURM", "needs Kubeflow"],
}
SMALLER = {  # the only changes: less data, and fewer passes
    "--rows 10000": "--rows 300",
    "train data --out run --workers 2\n": "train data --out run --workers 2 --epochs 2 --vector-epochs 1\n",
    'tenor.train("data", "run", workers=2)': 'tenor.train("data", "run", workers=2, epochs=2, vector_epochs=1)',
}
_BLOCK = re.compile(r"(?:^<!-- (not run|soak): ([^>]+) -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page. `mark` is empty, "soak" or "not run"."""

    page: Path
    mark: str
    reason: str
    language: str
    text: str


def blocks_of(page: Path, language: str = "sh") -> list[Block]:
    found = [Block(page, *match) for match in _BLOCK.findall(page.read_text("utf-8"))]
    return [block for block in found if block.language == language]


def chosen(pages: Sequence[Path], mark: str, language: str = "sh") -> list[Block]:
    return [block for page in pages for block in blocks_of(page, language) if block.mark == mark]


def name_of(block: Block) -> str:
    return f"{block.page.stem}: {block.text.splitlines()[0][:60]}"


def run_block(block: Block, folder: Path) -> None:
    """Run a block with bash in `folder`, where `tenor` is the code under test."""
    text = block.text
    for printed, smaller in SMALLER.items():
        text = text.replace(printed, smaller)
    command = ["bash", "-euo", "pipefail", "-c", text] if block.language == "sh" else [sys.executable, "-c", text]
    path = f"{_programs(folder)}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    with tempfile.TemporaryDirectory(prefix="d") as scratch:  # torchrun leaves a folder there
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment(PATH=path, TMPDIR=scratch, **MPI_VARIABLES),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=200)[0].decode("utf-8", "replace")
        finally:
            kill_group(process)
    assert process.returncode == 0, f"{name_of(block)} gave {process.returncode}:\n{output}"


def _programs(folder: Path) -> Path:
    """A folder with the command `tenor`, which need not be installed."""
    programs = folder / ".programs"
    if not programs.exists():
        programs.mkdir()
        (programs / "tenor").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tenor "$@"\n')
        (programs / "tenor").chmod(0o755)
    return programs


def write_inputs(folder: Path) -> None:
    """The files that the blocks read, under the names that the pages give them."""
    reviews = make_reviews(60)
    write_csv(folder / "other-reviews.csv", reviews, "review", "stars")
    (folder / "new-reviews.txt").write_text("a wonderful film\na boring film\n")
    (folder / "train.toml").write_text(blocks_of(QUICKSTART, "toml")[0].text)
    write_json_lines(folder / "reviews.jsonl.gz", reviews)
    write_csv(folder / "export.csv", reviews, delimiter=";")
    write_csv(folder / "reviews.txt", reviews, delimiter="~")
    write_csv(folder / "reviews", reviews)
    write_csv(folder / "columns.csv", reviews, "comment", "stars")
    named = [(review.text, "neg" if review.rating < 3 else "pos") for review in reviews]
    write_csv(folder / "words.csv", named, "text", "label")  # type: ignore[arg-type]
    rows = [f"{review.text} café\t{review.rating}\n" for review in reviews]
    (folder / "windows.csv").write_text("text,rating\n" + "".join(rows).replace("\t", ","), encoding="cp1252")
    (folder / "spreadsheet.txt").write_text("text\trating\n" + "".join(rows), encoding="utf-16")
    objects = write_json_lines(folder / "array", reviews).read_text().splitlines()
    (folder / "reviews.json").write_text(f"[{','.join(objects)}]")
    with zipfile.ZipFile(folder / "reviews.zip", "w") as archive:
        archive.write(folder / "reviews", "first.csv")
        archive.write(folder / "export.csv", "second.csv")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who has followed the quickstart from top to bottom; made once for all test processes."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, done = root / "story", root / "story-done"
    with (root / "story-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            write_inputs(folder)
            for block in chosen([QUICKSTART], ""):
                run_block(block, folder)
            done.touch()
    return folder


@pytest.fixture
def folder(story: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of that folder, without the run if the block makes one of that name."""
    text = request.getfixturevalue("block").text
    makes_run = "--out run" in text and "--resume" not in text
    ignored = shutil.ignore_patterns(*(["run"] if makes_run else []), "run-gru", ".programs")
    return shutil.copytree(story, tmp_path / "reader", ignore=ignored)


@pytest.mark.soak  # the block of the README has nearly the same commands
def test_the_quickstart_works_from_top_to_bottom(story: Path) -> None:
    made = ["data/manifest.json", "run/model.safetensors", "run-gru/result.json", "predictions.txt", "report.html"]
    assert [name for name in made if not (story / name).exists()] == []
    assert len((story / "predictions.txt").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "block",
    [*chosen([README], ""), *(pytest.param(block, marks=pytest.mark.soak) for block in chosen([README], "", "python"))],
    ids=name_of,
)
def test_a_block_of_the_readme_works(block: Block, tmp_path: Path) -> None:
    write_json_lines(tmp_path / "reviews.jsonl.gz", make_reviews(60))
    run_block(block, tmp_path)
    assert (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("block", [*chosen(HOW_TO, ""), *chosen(HOW_TO, "", "python")], ids=name_of)
def test_a_block_of_a_how_to_page_works(block: Block, tmp_path: Path) -> None:
    """Blocks that need the reader's run are marked soak, because that run takes long."""
    write_inputs(tmp_path)
    run_block(block, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("block", chosen([QUICKSTART, *HOW_TO], "soak"), ids=name_of)
def test_a_heavier_block_works(block: Block, folder: Path) -> None:
    run_block(block, folder)


@pytest.mark.soak
@pytest.mark.parametrize("block", chosen(HOW_TO, "soak", "python"), ids=name_of)
def test_the_python_of_a_how_to_page_works(block: Block, tmp_path: Path) -> None:
    write_csv(tmp_path / "export.csv", make_reviews(60), delimiter=";")
    run_block(block, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("block", chosen([QUICKSTART], "", "python"), ids=name_of)
def test_the_python_of_the_quickstart_works(block: Block, folder: Path) -> None:
    for name in ("data", "run"):
        shutil.rmtree(folder / name)
    run_block(block, folder)


def commands_in(text: str) -> list[list[str]]:
    """The words after each `tenor` of a shell block."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
        for at, word in enumerate(words[:-1]):
            is_name = words[at + 1][0] in "./" or words[max(at - 1, 0)] == "cd"  # of an image or a folder
            if word == "tenor" and not is_name and not set(words[at + 1]) & set("();<>|&"):
                ends = (n for n in range(at, len(words)) if set(words[n]) <= set("();<>|&"))
                found.append(words[at + 1 : next(ends, len(words))])
    return found


def test_every_command_is_found() -> None:
    text = "cd tenor && tenor prepare - --out x | head\ntorchrun -m tenor train \\\n data --out run > log  # why\n"
    assert commands_in(text) == [["prepare", "-", "--out", "x"], ["train", "data", "--out", "run"]]
    assert sum(len(commands_in(block.text)) for page in (README, QUICKSTART, *HOW_TO) for block in blocks_of(page)) > 40


@pytest.mark.parametrize("page", [README, QUICKSTART, *HOW_TO], ids=lambda page: page.stem)
def test_every_option_exists_and_has_a_possible_value(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    group: Any = typer.main.get_command(build_app())
    for block in blocks_of(page):
        for name, *words in commands_in(block.text):
            command = group.commands[name]
            context = command.make_context(name, words)
            own = inspect.signature(inspect.unwrap(command.callback), eval_str=True).parameters
            if "settings" in own:
                command_line._gather(own["settings"].annotation, context, dict(context.params))


def test_blocks_that_are_not_run_are_listed_with_their_reason() -> None:
    found: dict[str, list[str]] = {}
    for block in chosen([README, QUICKSTART, *HOW_TO], "not run"):
        found.setdefault(block.page.name, []).append(block.reason)
    assert found == NOT_RUN


@pytest.mark.parametrize("page", [README, QUICKSTART, *HOW_TO], ids=lambda page: page.stem)
def test_no_command_hides_in_another_kind_of_block(page: Path) -> None:
    fences = re.findall(r"^ *(?:```|~~~) *(\S*)", page.read_text("utf-8"), re.M)
    assert set(fences[::2]) <= {"sh", "python", "toml", "text"}
    assert re.findall(r"^(?: {4}|\t)\s*(?:tenor|dask|torchrun|mpirun|srun|pip) .*", page.read_text("utf-8"), re.M) == []
