"""The service does what its OpenAPI description says, checked by Schemathesis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import child_environment
from helpers.service import Client, served

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("cases", [8, pytest.param(2000, marks=pytest.mark.soak)])
def test_generated_requests_get_described_answers(folder: Path, tmp_path: Path, cases: int) -> None:
    """Schemathesis makes up to `cases` requests per operation; only /predict has so many different ones."""
    with served(folder, TOKEN, max_body_kb=64 * 1024) as client:  # its long texts are refused by their length
        command = [
            str(Path(sys.executable).parent / "schemathesis"),
            "run",
            f"http://127.0.0.1:{client.port}/openapi.json",
        ]
        command += ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", str(cases), "--checks", "all"]
        command += ["--exclude-checks", "ignored_auth", "--seed", "1", "--no-color"]
        environment = child_environment(HOME=str(tmp_path), PYTHONWARNINGS="ignore")
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        num_requests = count_requests(client)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert num_requests >= cases, os.linesep.join(ran.stdout.splitlines()[-20:])


def count_requests(client: Client) -> float:
    lines = client.get("/metrics").body.decode().splitlines()
    counts = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[:1] != "#"}
    assert [name for name in counts if 'status="5' in name and "total" in name] == []
    return sum(value for name, value in counts.items() if name.startswith("tenor_requests_total"))
