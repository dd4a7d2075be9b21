"""A process that has loaded Tenor once and forks for each command: `python -m fuzz.server SEEDS WORK`.

It reads one JSON request per line, `{"kind": "data", "seed": 17}`, and answers each with one line.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import random
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.actions import ACTIONS, BROKEN, SUITS, choose
from fuzz.arena import Arena
from fuzz.hostile_data import make_data
from fuzz.hostile_files import make_plans, make_vectors
from fuzz.hostile_runs import make_bench, make_run
from fuzz.oracle import Outcome, run_action
from fuzz.seeds import Seeds, make_seeds


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # only answers go to the client
    root, work = Path(sys.argv[1]), Path(sys.argv[2])
    seeds = _seeds(root)
    _warm(seeds, work)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(request, seeds, work)
        except Exception:  # a mistake in the fuzzer itself, which the client reports
            answer = {"mistake": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


def _seeds(root: Path) -> Seeds:
    """Make the valid inputs in a child, so that the cases do not inherit what training leaves in a process."""
    if not (root / "done").exists():
        root.mkdir(parents=True, exist_ok=True)
        _in_child(functools.partial(make_seeds, root))
        (root / "done").touch()
    return Seeds(root)


def _in_child(work: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        sys.exit("the valid inputs could not be made")


def _warm(seeds: Seeds, work: Path) -> None:
    """Import and compile everything that commands need, before the first fork."""
    import importlib

    import torch
    import typer.main

    torch.set_num_threads(1)
    for module in (
        "training.assemble",
        "prediction.predict",
        "prediction.evaluate",
        "preparation.job.prepare",
        "reports.report",
        "reports.runs.listing",
        "insights.find",
        "insights.drift",
        "planning.answers",
        "prediction.export",
        "serving.process.model",
    ):
        importlib.import_module(f"tenor.{module}")
    importlib.import_module("matplotlib.backends.backend_svg")
    importlib.import_module("matplotlib.backends.backend_agg")
    from tenor import cli
    from tenor.store.manifest import Manifest
    from tenor.training.recipe import DataFacts, complete
    from tenor.training.settings import TrainSettings
    from tenor.training.tasks.reviews import Reviews

    settings = TrainSettings(batch_size=16, workers="1", embeddings="none")
    task = Reviews(seeds.data, complete(settings, DataFacts.of(Manifest.load(seeds.data))))
    task.load(0, 0, slice(0, 16))
    task.close()
    command = typer.main.get_command(cli.build_app())
    cli.build_app = lambda names=(): command  # the same command line, without building it 10,000 times
    for name in ("insights", "drift", "serve"):  # their memory would be part of every child
        _in_child(functools.partial(_run_here, name, seeds, work))
    for name in ("predict", "evaluate run", "report"):
        _run_here(name, seeds, work)
    gc.collect()
    gc.freeze()


def _run_here(name: str, seeds: Seeds, work: Path) -> None:
    """Run a valid command in this process and discard its output."""
    from tenor import cli

    arena = Arena(work / "warm")
    arena.build()
    shutil.copytree(seeds.run, arena.case, dirs_exist_ok=True)
    action = ACTIONS[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            if action.call is not None:
                action.call(arena, 0)
            elif action.argv is not None:
                sys.argv = ["tenor", *map(str, action.argv(arena, seeds))]
                cli.main()
    finally:
        arena.remove()


def _answer(request: dict[str, Any], seeds: Seeds, work: Path) -> dict[str, Any]:
    kind, seed = request["kind"], request["seed"]
    arena = Arena(work / f"{kind}-{seed}".replace(" ", "-"))
    arena.remove()
    arena.build()
    rng = random.Random(f"{kind} {seed}")
    try:
        told = build_case(kind, rng, seeds, arena)
        if kind == "broken":
            outcomes = [run_action(request["action"], BROKEN[request["action"]], arena, seeds)]
        elif kind == "good":
            outcomes = [_on_good(name, arena, seeds) for name in ACTIONS if name != "train with a worker"]
        else:
            names = request.get("actions") or choose(kind, rng)
            outcomes = [_fresh(name, arena, seeds, seed) for name in names]
    finally:
        if not request.get("keep"):
            arena.remove()
    return {"kind": kind, "seed": seed, "did": told, "outcomes": [outcome.as_dict() for outcome in outcomes]}


def build_case(kind: str, rng: random.Random, seeds: Seeds, arena: Arena) -> list[str]:
    """Fill the arena's case folder; return descriptions of the changes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # casts that lose digits are intended
        if kind == "data":
            return make_data(rng, seeds, arena.case, arena.victims)
        if kind in ("runs", "resume"):
            return make_run(rng, seeds, arena.case, arena.victims, stopped=kind == "resume")
        if kind == "vectors":
            return make_vectors(rng, seeds, arena.case, arena.victims)
        if kind == "plans":
            return make_plans(rng, seeds, arena.case, arena.victims)
        return make_bench(rng, seeds, arena.case, arena.victims) if kind == "bench" else []


def _fresh(name: str, arena: Arena, seeds: Seeds, seed: int) -> Outcome:
    shutil.rmtree(arena.out)
    arena.out.mkdir()
    return run_action(name, ACTIONS[name], arena, seeds, seed)


def _on_good(name: str, arena: Arena, seeds: Seeds) -> Outcome:
    """Run an action on the valid folder that suits it."""
    arena.remove()
    arena.build()
    shutil.copytree(seeds.root / SUITS.get(name, "run"), arena.case, dirs_exist_ok=True)
    shutil.copy(seeds.bench, arena.case)
    return _fresh(name, arena, seeds, seed=0)


if __name__ == "__main__":
    main()
