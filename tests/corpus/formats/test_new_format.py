"""The example of docs/contributing/new-format.md, installed as a package of its own and used like any other format."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from helpers.command import run_tenor
from helpers.corpora import Review, make_reviews, write_json_lines
from helpers.processes import SOURCE, TESTS, child_environment, python

PAGE = TESTS.parent / "docs" / "contributing" / "new-format.md"
REVIEWS = make_reviews(300, seed=5)
EXAMPLE = b"5\nGreat sound.\nThe battery lasts a week.\n-----\n1\nThe cable broke after two days.\n-----\n"


def block(language: str) -> str:
    """The fenced block of the page in this language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's format as an installed package, as pip would leave it there."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "dashes.py").write_text(block("python"), "utf-8")
    groups = tomllib.loads(block("toml"))["project"]["entry-points"]
    info = folder / "dashes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dashes\nVersion: 1.0\n", "utf-8")
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in points.items()) for group, points in groups.items()]
    (info / "entry_points.txt").write_text("".join(lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the page's format as one more file and one more line."""
    text = PAGE.read_text("utf-8")
    names = re.search(r"save the file as `src/(\S+)` and add one line to `(\w+)` in\n`src/(\S+)`:\n\n(.+\n)", text)
    assert names is not None
    file, table, module, line = names.groups()
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(SOURCE / "tenor", folder / "tenor")  # with its compiled code
    assert not (folder / file).exists()
    (folder / file).write_text(block("python"), "utf-8")
    listed = (folder / module).read_text("utf-8")
    changed, count = re.subn(rf"^{table} = {{.*\n", lambda found: found[0] + line, listed, flags=re.MULTILINE)
    assert count == 1
    (folder / module).write_text(changed, "utf-8")
    return folder


def path_with(site: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS), str(site)])}


def write_dashes(path: Path, reviews: list[Review]) -> Path:
    data = "".join(f"{review.rating}\n{review.text}\n-----\n" for review in reviews).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


SCRIPT = """
import json, sys
from pathlib import Path
import tenor
folder, results = Path(sys.argv[1]), {}
for suffix in ("jsonl", "toy"):
    files, data = [folder / f"{number}.{suffix}" for number in range(2)], folder / f"data-{suffix}"
    made = tenor.prepare(files, data, tenor.PrepareSettings(workers=2))
    results[suffix] = [made.manifest_sha256, json.loads((data / "job.json").read_text())["workers"]]
small = tenor.TrainSettings(workers="1", threads=1, embeddings="none", hidden=8, embedding_dim=8, epochs=1)
tenor.train(data, folder / "run", small)
for suffix in results:
    new, out = folder / f"new.{suffix}", folder / f"labels-{suffix}"
    results[suffix] += [tenor.evaluate(folder / "run", new).accuracy, tenor.predict(folder / "run", new, out)]
    results[suffix] += out.read_text().splitlines()
print(json.dumps(results))
"""


def test_a_format_of_another_package(tmp_path: Path, site: Path) -> None:
    """prepare (with two worker processes), evaluate and predict give what they give for the same reviews as JSON."""
    for suffix, write in (("jsonl", write_json_lines), ("toy", write_dashes)):
        for number in range(2):
            write(tmp_path / f"{number}.{suffix}", REVIEWS[number::2])
        write(tmp_path / f"new.{suffix}", make_reviews(40, seed=6))
    command = python("-c", SCRIPT, str(tmp_path))
    environment = child_environment(**path_with(site))
    done = subprocess.run(command, env=environment, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)
    assert results["toy"] == results["jsonl"]
    assert (results["toy"][1], results["toy"][3], len(results["toy"])) == (2, 40, 44)


def test_the_command_line_knows_the_format(tmp_path: Path, site: Path) -> None:
    write_dashes(tmp_path / "a.toy.gz", REVIEWS[:50])
    write_dashes(tmp_path / "b.txt", REVIEWS[50:100]).write_bytes(
        (tmp_path / "b.txt").read_bytes() + b"5\n-----\nx\ngood \xff\n-----\nrest\n"
    )
    words = ("prepare", tmp_path / "a.toy.gz", tmp_path / "b.txt", "--out", tmp_path / "data", "--workers", "1")
    made = run_tenor(*words, "--format", "dashes", "--max-rejects", "1", "--json", env=path_with(site)).ok().json
    assert made["rows_kept"] == 100
    assert made["rejected"] == {"missing text": 1, "invalid UTF-8": 1, "no dashes at the end": 1}
    listed = [json.loads(line) for line in (tmp_path / "data" / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert [row["line"] for row in listed] == [152, 155, 156]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "example.toy").write_bytes(EXAMPLE * 20)
    found = run_tenor("prepare", tmp_path / "in", "--out", tmp_path / "other", "--json", env=path_with(site)).ok().json
    assert (found["rows_read"], found["duplicates"]) == (40, 38)
    assert block("text").encode() == EXAMPLE


def test_without_the_package_the_format_is_not_known(tmp_path: Path) -> None:
    write_dashes(tmp_path / "a.toy", REVIEWS)
    words = ("prepare", tmp_path / "a.toy", "--out", tmp_path / "data")
    assert "does not have a known format" in run_tenor(*words).failed(1)
    assert "--format cannot be 'dashes'" in run_tenor(*words, "--format", "dashes").failed(2)


def test_one_file_and_one_line_add_the_format_to_the_package(copy: Path, tmp_path: Path) -> None:
    write_dashes(tmp_path / "reviews.toy.gz", REVIEWS)
    words = ("prepare", tmp_path / "reviews.toy.gz", "--out", tmp_path / "data", "--workers", "1", "--json")
    result = run_tenor(*words, env={"PYTHONPATH": str(copy)}).ok().json
    assert (result["rows_read"], result["rejected"]) == (len(REVIEWS), {})
    shown = run_tenor("prepare", "--help", env={"PYTHONPATH": str(copy)}).ok().stdout
    assert "dashes" in shown
