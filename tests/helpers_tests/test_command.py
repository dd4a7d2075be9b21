"""`helpers.command` reports exit codes, output, JSON and time-outs correctly."""

import pytest
from helpers.command import Finished, run_tenor


def test_a_command_gives_code_and_streams() -> None:
    finished = run_tenor("--version").ok()
    assert finished.stdout.startswith("tenor ") and finished.stderr == ""


def test_json_is_parsed() -> None:
    assert Finished(("x",), 0, '{"rows": 3}\n', "").json == {"rows": 3}


def test_a_failure_shows_what_was_said() -> None:
    with pytest.raises(AssertionError, match=r"(?s)tenor nonsense gave 2.*No such command"):
        run_tenor("nonsense").ok()


def test_failed_wants_one_line_and_no_traceback() -> None:
    assert Finished(("x",), 1, "", "working\ntenor: it broke; fix it\n").failed() == "tenor: it broke; fix it"
    for stdout, stderr in (("", "Traceback (most recent"), ("", ""), ("left over", "tenor: it broke")):
        with pytest.raises(AssertionError):
            Finished(("x",), 1, stdout, stderr).failed()


def test_a_command_that_hangs_is_named() -> None:
    with pytest.raises(AssertionError, match=r"was still running after 0.2 s"):
        run_tenor("--version", python_options=("-c", "import time; time.sleep(60)"), timeout=0.2)
