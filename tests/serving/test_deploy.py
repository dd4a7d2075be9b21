"""The files in deploy/ fit the service: their options and limits exist and agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from tenor.serving.settings import TOKEN_VARIABLE, ServeSettings
from tenor.serving.token import read_token
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


def test_the_image_has_no_torch_and_its_service_gets_the_token_that_compose_passes() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    package = re.search(r"^ARG PACKAGE=(.*)$", text, re.MULTILINE)
    assert package is not None
    project = tomllib.loads((DEPLOY.parent / package[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert not any(line.startswith("torch") for line in project["dependencies"])
    copied = {name for words in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in words.split()}
    assert {"packaging", "src", "constraints.txt"} <= copied and all((DEPLOY.parent / name).exists() for name in copied)
    environ = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["tenor"]["environment"]
    assert environ[TOKEN_VARIABLE].startswith("${TENOR_TOKEN:?")  # a missing one is an error
    command = yaml.safe_load(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[-1])
    settings = ServeSettings(**{command[at].lstrip("-"): command[at + 1] for at in range(1, len(command), 2)})
    assert read_token(settings, {TOKEN_VARIABLE: "0123456789abcdef"}) == "0123456789abcdef"
