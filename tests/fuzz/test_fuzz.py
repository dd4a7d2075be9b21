"""With hostile folders and messages, every command succeeds or refuses them in one line.

Nothing crashes, waits forever, shows a traceback, takes more than 500 MB or changes a file outside --out. The counts
here are small; `make soak` runs thousands of cases, and `python tests/fuzz/run.py` any number.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.actions import BROKEN
from fuzz.client import Server, Summary, run_cases
from fuzz.hostile_messages import check_decode
from hypothesis import given
from hypothesis import strategies as st

from tenor.training.parameter_server.messages import MARK, PREFIX

SMALL = {"data": 12, "runs": 6, "resume": 4, "bench": 1, "messages": 4, "vectors": 6, "plans": 6}
FULL = {"data": 5000, "runs": 5000, "resume": 1000, "bench": 500, "messages": 1000, "vectors": 1000, "plans": 1000}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose good folders are made once, also where several processes run the tests."""
    own = tmp_path_factory.mktemp("fuzz")
    common = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with contextlib.ExitStack() as stack:
        with (common / "fuzz.lock").open("w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            running = stack.enter_context(Server(common / "fuzz-seeds", own / "work"))
        yield running


@pytest.mark.soak
def test_good_folders_are_accepted(server: Server) -> None:
    outcomes = server.ask("good", 0)["outcomes"]
    assert {outcome["action"]: (outcome["code"], outcome["failures"]) for outcome in outcomes} == {
        outcome["action"]: (0, []) for outcome in outcomes
    }


def test_the_harness_finds_each_kind_of_failure(server: Server) -> None:
    for name in BROKEN:
        (outcome,) = server.ask("broken", 0, action=name)["outcomes"]
        assert len(outcome["failures"]) == 1
        assert outcome["failures"][0].startswith(name)


@pytest.mark.parametrize("kind", SMALL)
def test_hostile(server: Server, kind: str) -> None:
    summary = Summary()
    for seed in range(1, SMALL[kind] + 1):
        summary.add(server.ask(kind, seed))
    assert not summary.failing, "\n".join(summary.lines())


@pytest.mark.soak
@pytest.mark.parametrize("kind", FULL)
def test_hostile_in_great_number(tmp_path: Path, kind: str) -> None:
    summary = Summary()
    for answer in run_cases(tmp_path, ((kind, seed) for seed in range(1, FULL[kind] + 1)), jobs=2):
        summary.add(answer)
    assert not summary.failing, "\n".join(summary.lines())


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    check_decode(data)


@given(st.binary(max_size=200), st.binary(max_size=40))
def test_any_bytes_in_a_right_frame_are_a_message_or_refused(head: bytes, body: bytes) -> None:
    check_decode(PREFIX.pack(MARK, len(head), len(body)) + head + body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["kind", "values", "arrays"]), inner),
    max_leaves=12,
)


@given(st.fixed_dictionaries({"kind": st.just("push") | _JSON, "values": st.just({}) | _JSON, "arrays": _JSON}))
def test_any_json_head_is_a_message_or_refused(head: dict[str, object]) -> None:
    text = json.dumps(head).encode()
    check_decode(PREFIX.pack(MARK, len(text), 0) + text)
