"""Bring the spans of all workers together, and write profile.json and trace.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tenor.groups import Group
from tenor.store.atomic import write_bytes
from tenor.store.strict import strict_json
from tenor.training.profiling.spans import NAMES, Profiler, RecordingProfiler, Span
from tenor.training.profiling.summary import OTHER, split_waits, summarise
from tenor.training.profiling.trace import trace_events

PROFILE, TRACE = "profile.json", "trace.json"
_MOST_GATHERED = 400_000  # spans of all workers together


def make_profiler(is_wanted: bool, device: torch.device) -> Profiler:
    """The profiler of this process."""
    if not is_wanted:
        return Profiler()
    return RecordingProfiler(torch.cuda.synchronize) if device.type == "cuda" else RecordingProfiler()


def gather_spans(profiler: Profiler, group: Group) -> dict[str, list[Span]]:
    """The spans of all workers by name, the same on all ranks. Every rank of the group calls it."""
    if isinstance(profiler, RecordingProfiler) and profiler.others:  # a parameter server, which is alone in its group
        others = {f"worker {worker}": list(spans) for worker, spans in sorted(profiler.others.items())}
        return {"server": profiler.take(), **others}
    own = profiler.take()[-_MOST_GATHERED // group.size :]
    counts = group.gather(torch.tensor([len(own)])).tolist()
    flat = [float(value) for span in own for value in (NAMES.index(span.name), *span[1:])]
    table = group.gather(torch.tensor(flat, dtype=torch.float64)).reshape(-1, 4).tolist()
    spans = [Span(NAMES[int(name)], start, end, int(step)) for name, start, end, step in table]
    ends = [sum(counts[: rank + 1]) for rank in range(group.size)]
    tracks = {f"worker {rank}": spans[end - counts[rank] : end] for rank, end in enumerate(ends)}
    return split_waits(tracks) if group.size > 1 else tracks


def write_profile(folder: Path, tracks: dict[str, list[Span]]) -> None:
    """Write both files into the run folder."""
    write_bytes(folder / TRACE, strict_json(trace_events(tracks)).encode())
    write_bytes(folder / PROFILE, (strict_json(summarise(tracks)) + "\n").encode())


def brief(tracks: dict[str, list[Span]]) -> dict[str, Any]:
    """What the result of a run says about its profile: the mean seconds of each part, by worker."""
    found = summarise(tracks)
    workers = {worker["name"]: worker["seconds"] for worker in found["workers"]}
    return {**{key: found[key] for key in ("first_step", "last_step", "steps")}, "workers": workers}


def table_of(profile: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """The titles and rows of a table: milliseconds per step of each part by worker, and the share of all time."""
    workers: dict[str, dict[str, float]] = profile["workers"]
    parts = list(dict.fromkeys(part for seconds in workers.values() for part in seconds))
    whole = sum(sum(seconds.values()) for seconds in workers.values()) or 1.0
    rows: list[list[Any]] = []
    for part in [*(part for part in parts if part != OTHER), OTHER]:
        values = [seconds.get(part, 0.0) for seconds in workers.values()]
        rows.append([part, *(1e3 * value for value in values), 100 * sum(values) / whole])
    rows.append(["step", *(1e3 * sum(seconds.values()) for seconds in workers.values()), 100.0])
    return ["milliseconds per step", *workers, "%"], rows
