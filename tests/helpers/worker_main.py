"""The main program of a spawned worker: import the target function, call it and write its result to a file."""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from types import ModuleType


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("worker_target", name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main(target: str, arguments: str, out: str) -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    name, _, function = target.rpartition(":")
    result = getattr(_module(name), function)(**json.loads(arguments))
    Path(out.format(rank=os.environ.get("OMPI_COMM_WORLD_RANK"))).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
