"""The service over real connections: answers, limits, the token and the description."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from helpers.service import Client, chance, served, until

TOKEN = "0123456789abcdef-secret"


def test_predictions_come_in_the_order_of_the_texts(client: Client) -> None:
    texts = ["", "a", "abcde", "a" * 19, "\x00é💡"]
    answer = client.predict(texts, probabilities=True, explain=True)
    assert answer.status == 200 and answer.json["model"] == "run"
    for text, found in zip(texts, answer.json["predictions"], strict=True):
        positive = chance(text)
        assert found["label"] == ("positive" if positive > 0.5 else "negative")
        assert found["probability"] == pytest.approx(max(positive, 1 - positive))
        assert found["probabilities"] == pytest.approx({"negative": 1 - positive, "positive": positive})
        assert found["explanation"] == [{"start": 0, "end": len(text), "text": text, "contribution": 0.5}]


def test_one_text_needs_no_list_and_options_are_off(client: Client) -> None:
    assert client.predict("abc").json["predictions"] == [{"label": "negative", "probability": 1 - chance("abc")}]
    assert client.model is not None and client.model.explained == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "EOF"),
        (b"[]", "object"),
        (b"{}", "texts: Field required"),
        (b'{"texts": []}', "texts"),
        (b'{"texts": [1]}', "texts"),
        (b'{"texts": null}', "texts"),
        (b'{"texts": ["a"], "explain": 1}', "explain"),
        (b'{"texts": ["a"], "more": 1}', "more: Extra inputs"),
        (b'{"texts": ["' + b"a" * 20_001 + b'"]}', "20000 characters"),
        (b'{"texts": [' + b",".join([b'"a"'] * 257) + b"]}", "256 items"),
        (b'{"texts": [' + b",".join([b'"a"'] * 17) + b'], "explain": true}', "limited to 16"),
        (b'{"texts": ["\xff"]}', "Invalid JSON"),
        (b'{"texts": ["\\ud800"]}', "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b'{"texts": NaN}', "texts"),
    ],
)
def test_a_wrong_body_is_named_in_one_line(client: Client, body: bytes, words: str) -> None:
    answer = client.send("POST", "/predict", body, content_type="application/json")
    assert answer.status == 422
    assert words in answer.json["error"] and "\n" not in answer.json["error"] and "; send" in answer.json["error"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/predict", {"content_type": "text/plain"}, 415),
        ("POST", "/predict", {"content_type": "application/json", "content_encoding": "br"}, 415),
        ("POST", "/predict", {"content_type": "application/json", "content_encoding": "gzip"}, 400),
        ("GET", "/predict", {}, 405),
        ("DELETE", "/healthz", {}, 405),
        ("POST", "/nowhere", {}, 404),
    ],
)
def test_other_requests_get_an_error_in_the_same_form(
    client: Client, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = client.send(method, path, b'{"texts": "a"}' if method == "POST" else None, **headers)
    assert answer.status == status and list(answer.json) == ["error"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_compressed_body_is_read_also_in_several_members(client: Client) -> None:
    body = json.dumps({"texts": ["abc"]}).encode()
    packed = gzip.compress(body[:5]) + gzip.compress(body[5:])
    answer = client.send("POST", "/predict", packed, content_type="application/json", content_encoding="gzip")
    assert answer.status == 200 and len(answer.json["predictions"]) == 1
    cut = client.send("POST", "/predict", packed[:-9], content_type="application/json", content_encoding="gzip")
    assert cut.status == 400 and "ends too early" in cut.json["error"]


def test_a_body_at_the_limit_passes_and_a_larger_one_does_not(folder: Path) -> None:
    with served(folder, max_body_kb=2) as client:
        body = json.dumps({"texts": "a"}).encode()
        exact = body + b" " * (2048 - len(body))
        for packed in (False, True):
            headers = {"content_type": "application/json", **({"content_encoding": "gzip"} if packed else {})}
            sizes = [(exact, 200), (exact + b" ", 413), (exact + bytes(10_000_000), 413)]
            for raw, status in sizes if packed else sizes[:2]:
                sent = gzip.compress(raw) if packed else raw
                assert client.send("POST", "/predict", sent, **headers).status == status
        assert client.send("POST", "/predict", exact * 100, content_type="application/json").status == 413


def test_requests_beyond_the_queue_are_refused_and_the_others_answered(folder: Path) -> None:
    with served(folder, queue_size=4, max_texts=4, batch_size=2, max_wait_ms=60_000) as client:
        model = client.model
        assert model is not None
        model.wait.clear()
        answers: list[Any] = []
        threads = [threading.Thread(target=lambda: answers.append(client.predict(["a", "b"]))) for _ in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: sum(answer.status == 503 for answer in answers) >= 4)
        assert client.get("/healthz").status == 200
        model.wait.set()
        for thread in threads:
            thread.join(20)
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] * 2 + [503] * 4  # one batch is computed, one waits
    assert {answer.headers.get("retry-after") for answer in answers if answer.status == 503} == {"1"}


def test_an_answer_that_takes_too_long_is_given_up(folder: Path) -> None:
    with served(folder, request_seconds=0.2) as client:
        assert client.model is not None
        client.model.wait.clear()
        answer = client.predict("a")
        assert answer.status == 503 and "no answer within 0.2 s" in answer.json["error"]


def test_a_failing_model_gives_503_and_then_500_without_details(folder: Path, caplog: Any) -> None:
    from tenor.errors import WorkerError

    with served(folder) as client:
        model = client.model
        assert model is not None

        def fail(texts: list[str]) -> list[list[float]]:
            raise WorkerError("ended") if texts == ["ended"] else ValueError("a secret detail")

        model.predict_proba = fail  # type: ignore[method-assign]
        assert client.predict(["ended"]).status == 503
        answer = client.predict(["other"])
        assert answer.status == 500 and "secret" not in answer.body.decode()


def test_the_token_guards_everything_that_tells_about_the_model(folder: Path) -> None:
    with served(folder, TOKEN) as client:
        assert client.predict("abc").status == 200
        for given in ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer é"):
            for path in ("/model", "/metrics", "/predict", "/nowhere"):
                answer = client.send("GET", path, authorization=given)
                assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
        stranger = Client(client.port)
        assert [stranger.get(path).status for path in ("/", "/healthz", "/readyz", "/openapi.json")] == [200] * 4
        assert client.send("GET", "/metrics", authorization=f"bearer {TOKEN}").status == 200


def test_metrics_count_requests_texts_and_batches(client: Client) -> None:
    client.predict(["a", "b", "c"])
    client.get("/nowhere-1")
    client.get("/nowhere-2")
    lines = client.get("/metrics").body.decode().splitlines()
    for line in (
        'tenor_requests_total{path="/predict",status="200"} 1.0',
        'tenor_requests_total{path="other",status="404"} 2.0',
        "tenor_texts_total 3.0",
        "tenor_batch_texts_sum 3.0",
        "tenor_waiting_texts 0.0",
        "tenor_ready 1.0",
        'tenor_model{version="run"} 1.0',
    ):
        assert line in lines


def test_facts_of_the_run_are_shown(client: Client) -> None:
    found = client.get("/model").json
    assert found["labels"] == ["negative", "positive"] and found["card"].startswith("# A card")
    assert found["metrics"]["split"] == "test" and 0 < found["metrics"]["accuracy"] < 1
    assert found["metrics"]["reliability"][0].keys() == {"low", "high", "rows", "probability", "share"}
    assert found["behaviour"]["irony"] == {"passed": 1, "cases": 4, "hard": True}
    assert found["limits"]["max_texts"] == 256


def test_without_a_test_split_the_metrics_are_those_of_the_validation_split(folder: Path) -> None:
    (folder / "result.json").write_text('{"test": {}, "valid": {"accuracy": 0.75}}')
    with served(folder) as client:
        found = client.get("/model").json["metrics"]
    assert found["split"] == "valid" and found["accuracy"] == 0.75


def test_hostile_facts_are_left_out(folder: Path) -> None:
    (folder / "behaviour.json").write_text('{"kinds": {"a": 1, "b": {"passed": 9, "cases": 3}, "c": []}}')
    (folder / "result.json").write_text('{"test": {"accuracy": "high", "reliability": [1, {"low": null}]}}')
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to("/etc/hostname")
    with served(folder) as client:
        found = client.get("/model").json
    assert found["card"] is None and found["behaviour"] is None
    assert found["metrics"]["accuracy"] is None and found["metrics"]["reliability"] == []


def test_the_page_may_load_nothing_and_run_only_its_own_script(client: Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    page = answer.body.decode()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    assert "/*SCRIPT*/" not in page and "innerHTML" not in page
