"""One contract, three engines: order, errors, lost workers, the same bytes, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from contracts.engine_checks import check_engine
from engines.installed import needs, run_module


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in ("local", "dask", "spark")])
def test_contract(name: str, tmp_path: Path) -> None:
    """Dask and Spark run in a process of their own; see `run_module`."""
    if name == "local":
        check_engine(name, tmp_path)
    else:
        run_module("contracts.engine_checks", name, tmp_path)
