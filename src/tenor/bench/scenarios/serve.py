"""Scenario `serve`: requests per second and waiting times of `tenor serve` beside a plain FastAPI endpoint.

Clients send one review per request over connections that stay open. A client sends its next request as soon as it has
the answer. The row `slow-headers` holds connections open that never finish their request, and measures how long
/healthz takes. Clients, service and model share the machine: beside other busy programs, waiting times are those of the
machine's scheduler, and only `cpu_ms_per_answer` can be compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tenor.bench.http_load import Answers, LoadPlan, answers_from, percentile
from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.services import RunningService, running_service, slow_clients
from tenor.bench.settings import BenchSettings
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import MissingExtra
from tenor.preparation.job.prepare import prepare
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

OPTIONS = ("rows", "clients", "duration", "run")
NUM_SLOW = 500
NUM_TEXTS = 500
WARM_SECONDS = 2.0
SERVICE = ("tenor", ("serve", "{run}", "--port", "{port}"))
PLAIN = ("tenor.bench.peers.plain_service", ("{run}", "{port}"))


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Start each service in turn and send it the same requests."""
    try:
        import fastapi  # noqa: F401 - the services need it
    except ImportError:
        raise MissingExtra("tenor bench serve", "serve") from None
    texts = _write_reviews(folder)
    model = Path(settings.run) if settings.run else _train(folder)
    works: dict[str, Callable[[], Mapping[str, float]]] = {
        "service": partial(_load, SERVICE, model, settings, texts),
        "plain-fastapi": partial(_load, PLAIN, model, settings, texts),
        "slow-headers": partial(_slow, model),
    }
    facts = {"clients": settings.clients}
    chosen = [
        Contender(name, works[name], {"clients": NUM_SLOW} if name == "slow-headers" else facts)
        for name in settings.chosen(works)
    ]
    result = measure("serve", chosen, settings.repeats, settings.warmups, progress)
    rates = {row["name"]: float(row.get("requests_per_s", 0)) for row in result.rows}
    if rates.get("service") and rates.get("plain-fastapi"):
        ratio = rates["service"] / rates["plain-fastapi"]
        result.notes.append(f"The service answers {ratio:.2f} times the requests per second of the plain endpoint.")
    return result


def _write_reviews(folder: Path) -> list[str]:
    raw = folder / "reviews.jsonl"
    generate(raw, GenerateSettings(rows=3000))
    with raw.open(encoding="utf-8") as file:
        return [json.loads(line)["reviewText"] for line, _ in zip(file, range(NUM_TEXTS), strict=False)]


def _train(folder: Path) -> Path:
    """A model of the default size; its speed does not depend on how long it was trained."""
    prepare([folder / "reviews.jsonl"], folder / "data")
    train(folder / "data", folder / "run", TrainSettings(max_steps=20, test=False, workers=1))
    return folder / "run"


def _load(
    program: tuple[str, tuple[str, ...]], model: Path, settings: BenchSettings, texts: list[str]
) -> Mapping[str, float]:
    module, words = program
    with running_service(module, [word.replace("{run}", str(model)) for word in words]) as service:
        send(LoadPlan("127.0.0.1", service.port, settings.clients, WARM_SECONDS, texts))
        before, used, began = service.memory_bytes(), service.cpu_seconds(), time.perf_counter()
        answers = send(LoadPlan("127.0.0.1", service.port, settings.clients, settings.duration, texts))
        seconds = time.perf_counter() - began
        growth, used = service.memory_bytes() - before, service.cpu_seconds() - used
    return {
        **figures(answers, settings.duration),
        "cpu_ms_per_answer": 1e3 * used / max(1, sum(map(len, answers.seconds.values()))),
        "memory_growth_mb": growth / 1e6,
        "seconds": seconds,
    }


def figures(answers: Answers, seconds: float) -> dict[str, float]:
    """What a row shows about the answers of a service."""
    accepted, refused = answers.seconds.get(200, []), answers.seconds.get(503, [])
    return {
        "requests_per_s": len(accepted) / seconds,
        "p50_ms": 1e3 * percentile(accepted, 0.5),
        "p99_ms": 1e3 * percentile(accepted, 0.99),
        "refused_per_s": len(refused) / seconds,
        "refused_p99_ms": 1e3 * percentile(refused, 0.99),
        "refused_max_ms": 1e3 * max(refused, default=0.0),
        "others": float(answers.others()),
    }


def send(plan: LoadPlan) -> Answers:
    """Send a load from a process of its own."""
    command = [sys.executable, "-m", "tenor.bench.http_load"]
    ran = subprocess.run(command, input=json.dumps(asdict(plan)).encode(), stdout=subprocess.PIPE, check=True)
    return answers_from(json.loads(ran.stdout))


def _slow(model: Path) -> Mapping[str, float]:
    module, words = SERVICE
    named = [word.replace("{run}", str(model)) for word in words]
    with running_service(module, named) as service, slow_clients(service.port, NUM_SLOW):
        return {"health_max_ms": 1e3 * max(_health(service) for _ in range(20))}


def _health(service: RunningService) -> float:
    time.sleep(0.1)
    return service.health_seconds()
