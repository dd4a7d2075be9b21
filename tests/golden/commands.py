"""The commands with `--json`, one after another in the folder of the inputs: `python -m golden.commands LIST`.

LIST is `usual` or `slow`. All commands run in this process, as `python -m tenor` runs them, so that torch and the
compiled functions are loaded once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SMALL = "--embeddings none --threads 1 --hidden 8 --embedding-dim 8 --batch-size 32 --epochs 2 "
SMALL += "--characters 0 --timeout 120"
# name → (command line, file for standard input). `prepared` holds the data of `cases.PREPARE`.
USUAL: dict[str, tuple[str, str | None]] = {
    "generate": ("generate generated.jsonl --rows 200 --seed 3 --duplicates 0.1 --noise 0.1 --length 20", None),
    "prepare": ("prepare generated.jsonl --out generated --workers 1", None),
    "prepare, broken lines": ("prepare broken.jsonl --out accepted --max-rejects 0.1 --workers 1", None),
    "prepare, standard input": ("prepare - --out from-input --workers 1 --labels stars", "reviews.jsonl.gz"),
    "prepare, 2 workers": ("prepare many --out many-prepared --workers 2 --title-column title", None),
    "prepare, check": ("prepare --check prepared/training", None),
    "train": (f"train prepared/training --out runs/one --workers 1 {SMALL}", None),
    "train, resume a finished run": (f"train prepared/training --out runs/one --workers 1 --resume {SMALL}", None),
    "train, 2 workers": (f"train prepared/training --out runs/two --workers 2 --cell gru {SMALL}", None),
    "train, stars": (
        "train prepared/training_stars --out runs/stars --workers 1 --cell qrnn --layers 2 " + SMALL,
        None,
    ),
    "train, points": (
        "train points --task points --out runs/points --workers 1 --threads 1 --hidden 8 --max-steps 10",
        None,
    ),
    "evaluate, prepared": ("evaluate runs/one prepared/training", None),
    "evaluate, another split": ("evaluate runs/stars prepared/training_stars --split valid", None),
    "evaluate, raw csv": ("evaluate runs/one reviews.csv --threads 1", None),
    "evaluate, raw with broken lines": ("evaluate runs/one broken.jsonl --max-rejects 0.1 --threads 1", None),
    "evaluate, raw stars": ("evaluate runs/stars reviews.parquet --threads 1", None),
    "predict": ("predict runs/one reviews.csv --threads 1", None),
    "predict, standard input": ("predict runs/one - --threads 1", "texts.txt"),
    "predict, stars": ("predict runs/stars texts.txt --threads 1", None),
    "predict, out": ("predict runs/one reviews.jsonl --out predicted.jsonl --threads 1", None),
    "report": ("report runs/two --out report.html", None),
}
SLOW: dict[str, tuple[str, str | None]] = {
    "prepare, dask": ("prepare many --out dask-prepared --engine dask --workers 2 --title-column title", None),
    "train, compare": (f"train prepared/training --out runs/compared --compare lstm,gru --workers 1 {SMALL}", None),
    "bench prepare": ("bench prepare --megabytes 1 --rows tenor-1,wc --workers 1 --repeats 1", None),
    "train, async": (
        f"train prepared/training --out runs/async --workers 2 --strategy async --staleness 0 {SMALL}",
        None,
    ),
    "bench": ("bench strategies --rows single --workers 1 --repeats 1 --out bench.json", None),
}
LISTS = {"usual": USUAL, "slow": SLOW}
# The files that a command leaves and that the test compares too.
LEFT = {
    "generate": ("generated.jsonl",),
    "prepare": ("generated",),
    "prepare, broken lines": ("accepted",),
    "prepare, standard input": ("from-input",),
    "prepare, 2 workers": ("many-prepared",),
    "prepare, dask": ("dask-prepared",),
    "train": ("runs/one/config.json", "runs/one/metrics.jsonl", "runs/one/result.json", "runs/one/model.safetensors"),
    "train, 2 workers": ("runs/two/metrics.jsonl", "runs/two/model.safetensors"),
    "predict, out": ("predicted.jsonl",),
}
LINES = ("predict", "predict, standard input", "predict, stars")  # print one JSON object per review
# Times, rates, paths, versions and machines. `bytes` of a report counts the digits of times.
VARYING = {
    *(
        "seconds",
        "samples_per_s",
        "tokens_per_s",
        "mb_per_s",
        "reviews_per_s",
        "compute_seconds",
        "wait_seconds",
        "load_seconds",
    ),
    *("out", "run", "report", "checked", "environment", "speed_up", "efficiency"),
}
VARYING_IN = {
    "report": {"bytes"},
    "train, async": {"bytes_sent", "requeued"},
    "bench prepare": {"startup_s", "cpu_s", "memory_mb", "of_wc", "notes", "peak_mb"},
}


def stable(value: Any, varying: Iterable[str]) -> Any:
    """The value, with the types of varying values in their place."""
    if isinstance(value, dict):
        return {key: _mask(part) if key in varying else stable(part, varying) for key, part in value.items()}
    return [stable(part, varying) for part in value] if isinstance(value, list) else value


def _mask(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mask(part) for key, part in value.items()}
    return [_mask(part) for part in value] if isinstance(value, list) else f"<{type(value).__name__}>"


def run_command(line: str, standard_input: str | None) -> str:
    """What `python -m tenor LINE --json` prints on standard output."""
    before = sys.argv, sys.stdin
    words = [word.replace("training_stars", "training stars") for word in line.split()]
    sys.argv = ["tenor", *words, "--json"]
    data = Path(standard_input).read_bytes() if standard_input else b""
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_module("tenor", run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise RuntimeError(f"tenor {line} gave exit code {error.code}") from error
    finally:
        sys.argv, sys.stdin = before
    return out.getvalue()


def describe_file(path: Path, varying: Iterable[str]) -> Any:
    """A folder's hashes by file, a JSON file's values, or the hash of another file."""
    if path.is_dir():
        from golden.preparing import hash_folder

        return hash_folder(path)
    if path.name in ("config.json", "result.json"):
        return stable(json.loads(path.read_bytes()), varying)
    if path.name == "metrics.jsonl":
        return [stable(json.loads(line), varying) for line in path.read_text("utf-8").splitlines()]
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    found: dict[str, Any] = {}
    for name, (line, standard_input) in LISTS[sys.argv[1]].items():
        varying = VARYING | VARYING_IN.get(name, set())
        printed = run_command(line, standard_input)
        if name in LINES:
            lines = printed.splitlines()
            digest = hashlib.sha256(printed.encode()).hexdigest()
            found[name] = {"lines": len(lines), "first": json.loads(lines[0]), "sha256": digest}
        else:
            found[name] = stable(json.loads(printed), varying)
        for left in LEFT.get(name, ()):
            found[f"{name}: {left}"] = describe_file(Path(left), varying)
    Path(f"{sys.argv[1]}.json").write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
