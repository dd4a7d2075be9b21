"""The commands that the fuzzer runs on a hostile folder, in a process that has already loaded Tenor."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.arena import Arena
from fuzz.seeds import TINY, Seeds

# The variables of torchrun's only rank: the command then trains in its own process
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}


@dataclass(frozen=True)
class Action:
    """A command line, or a function of this file, to run on a case."""

    argv: Callable[[Arena, Seeds], list[object]] | None = None
    call: Callable[[Arena, int], None] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    may_change: tuple[str, ...] = ()  # paths in the arena that may change, besides everything below --out
    seconds: float = 120.0  # wall-clock limit, which finds processes that wait forever; a busy machine is no failure
    processor_seconds: int = 20
    answers: str = ""  # "json": one JSON object on standard output; "lines": one JSON object per line


_LEDGER = ("case", "case/predictions.jsonl")  # `tenor plan` keeps its predictions beside its source


def _train(*options: str) -> Callable[[Arena, Seeds], list[object]]:
    fixed = ("--json", "--max-steps", "2", "--workers", "1", *TINY, *options)  # no vectors: they need a process
    return lambda arena, seeds: ["train", arena.case, "--out", arena.out / "run", *fixed]


def _load(arena: Arena, seed: int) -> None:
    """Call `tenor.load` as a program would; any TenorError is an acceptable outcome."""
    import tenor

    model = tenor.load(arena.case)
    model.predict(["the film was superb", "", "\ud800 odd"])


def _serve(arena: Arena, seed: int) -> None:
    """Read a run folder as `tenor serve` does, in this process; texts and facts must be JSON."""
    import json

    from tenor.serving.facts import read_facts
    from tenor.serving.process.model import load_served

    model = load_served(arena.case, 1)
    print(json.dumps([model.labels, read_facts(arena.case), model.explain(["the film was superb"])], allow_nan=False))


def _messages(arena: Arena, seed: int) -> None:
    from fuzz.hostile_messages import check_channel, check_decode, make_frame

    rng = random.Random(seed)
    for _ in range(100):
        check_decode(make_frame(rng))
    check_channel(rng, arena.out, 5)


ACTIONS = {
    "train": Action(_train("--embeddings", "none"), variables=ALONE, answers="json"),
    "train staged": Action(
        lambda arena, seeds: [*_train("--embeddings", "none")(arena, seeds), "--stage", arena.out / "cache"],
        variables=ALONE,
        answers="json",
    ),
    "train with a worker": Action(_train("--embeddings", "auto"), seconds=300.0, answers="json"),
    "evaluate data": Action(lambda arena, seeds: ["evaluate", seeds.run, arena.case, "--json"], answers="json"),
    "borrow vocabulary": Action(
        lambda arena, seeds: [
            *("prepare", seeds.root / "raw.jsonl", "--out", arena.out / "data", "--vocab", arena.case),
            *("--workers", "1", "--json"),
        ],
        answers="json",
    ),
    "predict": Action(lambda arena, seeds: ["predict", arena.case, seeds.reviews, "--json"], answers="lines"),
    "predict a file": Action(
        lambda arena, seeds: ["predict", arena.case, seeds.reviews, "--out", arena.out / "said.jsonl", "--json"],
        answers="json",
    ),
    "evaluate run": Action(lambda arena, seeds: ["evaluate", arena.case, seeds.data, "--json"], answers="json"),
    "evaluate raw": Action(
        lambda arena, seeds: ["evaluate", arena.case, seeds.root / "raw.jsonl", "--json"], answers="json"
    ),
    "load": Action(call=_load),
    "report": Action(
        lambda arena, seeds: ["report", arena.case, "--out", arena.out / "report.html", "--json"], answers="json"
    ),
    "report inside": Action(
        lambda arena, seeds: ["report", arena.case, "--json"], answers="json", may_change=("case", "case/report.html")
    ),
    "report several": Action(
        lambda arena, seeds: ["report", seeds.run, arena.case, "--out", arena.out / "r.html", "--price", "1", "--json"],
        answers="json",
    ),
    "compare": Action(
        lambda arena, seeds: ["runs", seeds.run, arena.case, "--where", "state=finished", "--compare", "--json"],
        answers="json",
    ),
    "compare on data": Action(
        lambda arena, seeds: ["runs", arena.case, seeds.run, "--compare", "--data", seeds.data, "--json"],
        answers="json",
    ),
    "resume": Action(
        lambda arena, seeds: ["train", seeds.data, "--out", arena.case, "--resume", "--workers", "1", "--json", *TINY],
        variables=ALONE,
        answers="json",
        may_change=("case/",),
    ),
    "resume as it was": Action(
        lambda arena, seeds: ["train", seeds.data, "--out", arena.case, "--resume", "--max-steps", "20", "--json"],
        variables=ALONE,
        answers="json",
        may_change=("case/",),
    ),
    "report bench": Action(
        lambda arena, seeds: [
            *(
                "report",
                seeds.run,
                arena.case / "scaling.json",
                "--out",
                arena.out / "r.html",
                "--price",
                "1",
                "--json",
            ),
        ],
        answers="json",
        seconds=150.0,
        processor_seconds=60,
    ),
    "messages": Action(call=_messages),
    "insights": Action(
        lambda arena, seeds: [
            *("insights", arena.case, seeds.root / "raw.jsonl", "--out", arena.out / "insights.html"),
            *("--workers", "1", "--json"),
        ],
        answers="json",
    ),
    "drift": Action(
        lambda arena, seeds: ["drift", arena.case, seeds.root / "raw.jsonl", "--json"],
        answers="json",
    ),
    "drift from data": Action(
        lambda arena, seeds: ["drift", seeds.run, seeds.root / "raw.jsonl", "--reference", arena.case, "--json"],
        answers="json",
    ),
    "list runs": Action(
        lambda arena, seeds: ["runs", arena.root, "--sort", "-test_accuracy", "--json"],
        answers="json",
    ),
    "export": Action(
        lambda arena, seeds: ["export", arena.case, "--format", "onnx", "--out", arena.out / "m", "--json"],
        answers="json",
    ),
    "export on data": Action(
        lambda arena, seeds: [
            *("export", seeds.conv, "--format", "onnx", "--out", arena.out / "m", "--data", arena.case, "--json"),
        ],
        answers="json",
    ),
    "serve": Action(call=_serve, answers="json"),
    "plan": Action(
        lambda arena, seeds: ["plan", arena.case, "--ledger", arena.out / "ledger", "--json"], answers="json"
    ),
    "embed data": Action(
        lambda arena, seeds: [
            *("embed", arena.case, "--out", arena.out / "v", "--dim", "4", "--epochs", "1", "--workers", "1"),
            *("--min-count", "1", "--json"),
        ],
        answers="json",
        seconds=300.0,
    ),
    "neighbours": Action(lambda arena, seeds: ["neighbours", arena.case, "the", "--json"], answers="json"),
    "neighbours in text": Action(
        lambda arena, seeds: ["neighbours", arena.case / "words.txt", "the", "--json"], answers="json"
    ),
    "neighbours in binary": Action(
        lambda arena, seeds: ["neighbours", arena.case / "words.bin", "the", "--json"], answers="json"
    ),
    "neighbours in gz": Action(
        lambda arena, seeds: ["neighbours", arena.case / "words.vec.gz", "the", "--json"], answers="json"
    ),
    "report vectors": Action(
        lambda arena, seeds: ["report", arena.case, seeds.run, "--out", arena.out / "r.html", "--json"], answers="json"
    ),
    "export vectors": Action(
        lambda arena, seeds: ["export", arena.case, "--format", "fasttext", "--out", arena.out / "w.vec", "--json"],
        answers="json",
    ),
    "train from vectors": Action(
        lambda arena, seeds: [
            *("train", seeds.data, "--out", arena.out / "run", "--json", "--max-steps", "1", "--workers", "1", *TINY),
            *("--embeddings", arena.case),
        ],
        variables=ALONE,
        answers="json",
    ),
    "train from words": Action(
        lambda arena, seeds: [
            *("train", seeds.data, "--out", arena.out / "run", "--json", "--max-steps", "1", "--workers", "1", *TINY),
            *("--embeddings", arena.case / "words.bin"),
        ],
        variables=ALONE,
        answers="json",
    ),
    "plan from run": Action(
        lambda arena, seeds: ["plan", arena.case / "run", "--out", arena.out / "plan.json", "--json"],
        answers="json",
        may_change=_LEDGER,
    ),
    "plan with data": Action(
        lambda arena, seeds: ["plan", arena.case / "run", "--data", arena.case / "data", "--json"],
        answers="json",
        may_change=_LEDGER,
    ),
    "plan from measurement": Action(
        lambda arena, seeds: [
            *("plan", arena.case / "measurement.json", "--write", "slurm", "--job", arena.out / "job", "--json"),
        ],
        answers="json",
        may_change=_LEDGER,
    ),
    "plan from table": Action(
        lambda arena, seeds: ["plan", "--from", arena.case / "runs.csv", "--out", arena.out / "plan.json", "--json"],
        answers="json",
    ),
    "plan from objects": Action(
        lambda arena, seeds: ["plan", "--from", arena.case / "runs.json", "--workers", "1-64", "--json"], answers="json"
    ),
    "plan with prices": Action(
        lambda arena, seeds: [
            *("plan", seeds.plans / "measurement.json", "--prices", arena.case / "prices.toml"),
            *("--ledger", arena.out / "ledger", "--json"),
        ],
        answers="json",
    ),
    "plan for a machine": Action(
        lambda arena, seeds: [
            *("plan", seeds.plans / "measurement.json", "--prices", arena.case / "prices.toml", "--machine", "x"),
            *("--ledger", arena.out / "ledger", "--json"),
        ],
        answers="json",
    ),
    "score": Action(lambda arena, seeds: ["plan", arena.case, "--score", "--json"], answers="json"),
    "train with settings": Action(
        lambda arena, seeds: [
            *("train", seeds.data, "--out", arena.out / "run", "--config", arena.case / "train.toml"),
            *("--max-steps", "1", "--workers", "1", "--embeddings", "none", "--json", *TINY),
        ],
        variables=ALONE,
        answers="json",
    ),
}


def choose(kind: str, rng: random.Random) -> list[str]:
    """Choose the actions of a case; those that change the folder come last."""
    if kind == "data":
        rare = [name for name, share in DATA_SHARES.items() if rng.random() < share]
        return ["train", "evaluate data", *rare]
    if kind == "runs":
        reading = rng.choice(["load", "evaluate run", "evaluate raw", "predict a file"])
        pages = {"report": 3, "report several": 2, "report inside": 1, "borrow vocabulary": 1, "": 3}  # pages are slow
        compare = rng.choices(["compare", "compare on data"], [3, 1])
        chosen = ["predict", reading, *compare, *filter(None, rng.choices(list(pages), list(pages.values())))]
        return [*chosen[:-1], rng.choice(["insights", "drift", "list runs", "export", "serve", "plan"]), chosen[-1]]
    if kind == "vectors":
        return ["neighbours", rng.choice(FOLDER_READERS), rng.choice(FILE_READERS)]
    if kind == "plans":
        return rng.sample(PLANS, 3)
    return {
        "resume": [rng.choice(["resume", "resume as it was"])],
        "bench": ["report bench"],
        "messages": ["messages"],
    }[kind]


DATA_SHARES = {
    "train staged": 0.1,
    "borrow vocabulary": 0.05,
    "drift from data": 0.05,
    "export on data": 0.05,
    "train with a worker": 0.004,
    "embed data": 0.01,
}
FOLDER_READERS = ("report vectors", "export vectors", "train from vectors")
FILE_READERS = ("neighbours in text", "neighbours in binary", "neighbours in gz", "train from words")
PLANS = (
    *("plan from run", "plan with data", "plan from measurement", "plan from table", "plan from objects"),
    *("plan with prices", "plan for a machine", "score", "train with settings"),
)
KINDS = ("data", "runs", "resume", "bench", "messages", "vectors", "plans")
# The valid folder that suits an action; the others get a finished run
SUITS = {
    **{
        "resume": "stopped",
        "resume as it was": "stopped",
        "train": "data",
        "train staged": "data",
        "evaluate data": "data",
        "embed data": "data",
    },
    **{"drift from data": "data", "export on data": "data", "plan": "plans/run", "export": "conv"},
    **dict.fromkeys(("neighbours", *FOLDER_READERS, *FILE_READERS), "vectors"),
    **dict.fromkeys(PLANS, "plans"),
}


# Deliberate failures: the tests of the fuzzer check that each of them is found.
def _write_outside(arena: Arena, seed: int) -> None:
    (arena.victims / "file").write_text("changed", "utf-8")


def _leave_behind(arena: Arena, seed: int) -> None:
    (arena.temporary / "left").touch()


def _use_memory(arena: Arena, seed: int) -> None:
    len(b"x" * (600 << 20))


def _wait(arena: Arena, seed: int) -> None:
    (arena.out / "pipe").unlink(missing_ok=True)
    os.mkfifo(arena.out / "pipe")
    (arena.out / "pipe").read_bytes()


def _spin(arena: Arena, seed: int) -> None:
    import time

    while time.process_time() < 10**6:
        pass


def _orphan(arena: Arena, seed: int) -> None:
    if os.fork() == 0:
        signal.pause()


def _print_nan(arena: Arena, seed: int) -> None:
    print('{"accuracy": NaN}')


def _leak(arena: Arena, seed: int) -> None:
    print((arena.victims / "file").read_text("utf-8"))


def _show_script(arena: Arena, seed: int) -> None:
    (arena.out / "page.html").write_text("<p><script>alert(1)</script></p>", "utf-8")


def _fill_disk(arena: Arena, seed: int) -> None:
    with Path(arena.out / "large").open("wb") as file:
        for _ in range(300):
            file.write(bytes(1 << 20))


BROKEN = {
    "crash": Action(call=lambda arena, seed: os.kill(os.getpid(), signal.SIGSEGV)),
    "traceback": Action(call=lambda arena, seed: {}["absent"]),
    "exit code": Action(call=lambda arena, seed: os._exit(7)),
    "written outside": Action(call=_write_outside),
    "left in the temporary folder": Action(call=_leave_behind),
    "memory": Action(call=_use_memory),
    "hang": Action(call=_wait, seconds=1.0),
    "slow": Action(call=_spin, processor_seconds=1),
    "left a process": Action(call=_orphan),
    "not JSON": Action(call=_print_nan, answers="json"),
    "another user's file shown": Action(call=_leak),
    "file too large": Action(call=_fill_disk),
    "script in a page": Action(call=_show_script),
}
