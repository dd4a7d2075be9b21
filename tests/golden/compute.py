"""Results of Tenor that a restructuring must not change, as a dictionary: name → hash or JSON value.

Everything goes through the public functions (`tenor.prepare`, `tenor.train`) and the commands, so modules may move.

Compared to the bit:
- shards, vocab.json, manifest.json and rejects.jsonl of each preparation, as SHA-256;
- the final weights (`weights_sha256`) and model.safetensors of each training;
- predictions;
- the keys of each command's JSON, and every value in it that is not listed below.
Compared to six significant digits: metrics and losses, because numpy computes logarithms differently on different
processors.
Compared by type only: times, rates, paths, versions and the machine. Also the weights of `hogwild` and of `async` with
late gradients, which differ from run to run.

Weights should be the same on every x86-64 processor, because `ENVIRONMENT` makes every library take its plainest code
path. On a processor with AVX-512, each of the first four variables changes some weights, and the fifth some
predictions. NUMBA_CPU_NAME is not among
them: numba neither fuses nor reorders operations, so its functions gave the same bits for that processor and for a
generic one, and the second compilation would take 20 s. Weights do depend on the versions in constraints.txt, which the
stored file names.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from helpers.processes import child_environment, describe_exit, kill_group, python

EXPECTED = Path(__file__).with_name("expected.json")
SECONDS = 280.0  # for each of the programs below
DIGITS = 6
VERSIONS = ("torch", "numpy", "numba", "h5py", "pyarrow")
ENVIRONMENT = {
    "ATEN_CPU_CAPABILITY": "default",  # torch's own operations
    "MKL_CBWR": "COMPATIBLE",  # matrix products
    "ONEDNN_MAX_CPU_ISA": "SSE41",  # recurrent layers
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4",  # exponentials and logarithms
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy's matrix products; needs AVX2
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}


def prepare_all(folder: Path) -> dict[str, Any]:
    """The hashes of every preparation. The other functions use the data that this one leaves in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (printed,) = run_programs([["golden.preparing"]], folder)
    return {f"prepare: {name}": files for name, files in json.loads(printed).items()}


def train_all(folder: Path) -> dict[str, Any]:
    """The weights of every training."""
    from golden.team import PROCESSES

    runs = folder / "team"
    runs.mkdir()
    run_programs([["golden.team", str(runs), str(place)] for place in range(PROCESSES)], folder)
    found: dict[str, Any] = {}
    for place in range(PROCESSES):
        found |= json.loads((runs / f"found-{place}.json").read_text("utf-8"))
    return {f"train: {name}": found[name] for name in sorted(found)}


def run_commands(folder: Path, which: str = "usual") -> dict[str, Any]:
    """The JSON of every command."""
    run_programs([["golden.commands", which]], folder)
    found = json.loads((folder / f"{which}.json").read_text("utf-8"))
    return {f"{which} command: {name}": value for name, value in found.items()}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "prepare": prepare_all,
    "train": train_all,
    "usual command": run_commands,
    "slow command": partial(run_commands, which="slow"),
}


def run_programs(modules: list[list[str]], folder: Path) -> list[str]:
    """Run modules at the same time with the fixed environment; what each printed."""
    settings = {**ENVIRONMENT, "MPLBACKEND": "svg"}
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(
            python("-m", *words),
            **{"env": child_environment(**settings), "cwd": folder, "start_new_session": True},
            **{"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True},
        )
        for words in modules
    ]
    try:
        ended = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            kill_group(process)
    failures = [
        f"{' '.join(words)} {describe_exit(process.returncode)}:\n{said}"
        for words, process, (_, said) in zip(modules, started, ended, strict=True)
        if process.returncode
    ]
    assert not failures, "\n".join(failures)
    return [printed for printed, _ in ended]


def versions() -> dict[str, str]:
    """The versions that the stored values depend on; without the suffix of a CPU-only build."""
    return {name: metadata.version(name).partition("+")[0] for name in VERSIONS}


def rounded(value: Any) -> Any:
    """The value as it is stored: floats with six significant digits."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def differences(expected: Any, found: Any, name: str) -> list[str]:
    """One line per difference, each with the place in the value."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = [f"{name}: {key!r} is missing" for key in expected if key not in found]
        lines += [f"{name}: {key!r} is new" for key in found if key not in expected]
        both = [key for key in expected if key in found]
        if both != [key for key in found if key in expected]:
            lines.append(f"{name}: keys are in another order")
        return lines + [line for key in both for line in differences(expected[key], found[key], f"{name} › {key}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{name} › {place}")]
    if type(expected) is type(found) is float:
        is_same = math.isclose(expected, found, rel_tol=10.0 ** (1 - DIGITS), abs_tol=1e-9)
    else:
        is_same = type(expected) is type(found) and expected == found
    return [] if is_same else [f"{name}: was {expected!r}, is {found!r}"]


def order(found: dict[str, Any]) -> str:
    """The stored file's text: one entry per line, so that a change shows which results changed."""
    lines = [f" {json.dumps(name)}: {json.dumps(rounded(value))}" for name, value in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
