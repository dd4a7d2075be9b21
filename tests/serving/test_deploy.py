"""The files in deploy/ fit the service: their options and limits exist and agree."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tenor.serving.settings import ServeSettings
from tenor.settings import field_names, option_name

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OPTIONS = {option_name(name) for name in field_names(ServeSettings)}


def test_every_option_exists() -> None:
    texts = {name: (DEPLOY / name).read_text("utf-8") for name in ("Dockerfile", "tenor.service", "nginx.conf")}
    assert set(re.findall(r"--[a-z-]+", texts["tenor.service"] + texts["nginx.conf"])) <= OPTIONS
    command = re.search(r"^CMD (\[.*\])$", texts["Dockerfile"], re.MULTILINE)
    assert command is not None
    assert {word for word in yaml.safe_load(command[1]) if word.startswith("--")} <= OPTIONS
    assert re.search(r"^USER tenor$", texts["Dockerfile"], re.MULTILINE)


def test_compose_drains_within_its_grace_period_and_stays_on_loopback() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["tenor"]
    assert float(service["stop_grace_period"].removesuffix("s")) > ServeSettings().drain_seconds
    assert service["ports"] == ["127.0.0.1:8000:8000"] and service["read_only"] is True
    unit = (DEPLOY / "tenor.service").read_text("utf-8")
    assert float(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]) > ServeSettings().drain_seconds
    assert "SuccessExitStatus=143" in unit
