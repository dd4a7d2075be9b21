"""Prices: those that come with Tenor, those of a file, and what is refused."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.errors import UsageError
from tenor.planning.inputs.prices import Machine, find_machine, read_prices, to_cents


def test_the_machines_of_the_course_projects_and_processors_beside_them() -> None:
    prices = read_prices(None)
    paid = {name: prices[name].dollars_per_hour for name in ("p2.xlarge", "g3.4xlarge", "g3.16xlarge")}
    assert paid == {"p2.xlarge": Decimal("0.90"), "g3.4xlarge": Decimal("1.14"), "g3.16xlarge": Decimal("4.56")}
    assert [machine.gpus for machine in prices.values()].count(0) >= 5
    assert all(machine.cores > 0 and machine.network for machine in prices.values())


def test_a_file_replaces_them(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        '["big.box"]\ndollars_per_hour = 2.505\ncores = 8\nnetwork = "10gbit,50us"\n[plain]\ndollars_per_hour = 1\n'
    )
    prices = read_prices(file)
    assert set(prices) == {"big.box", "plain"} and prices["plain"] == Machine("plain", Decimal(1), 1)
    assert prices["big.box"].dollars(3, 1800.0) == Decimal("2.505") * 3 / 2
    with pytest.raises(UsageError, match=r"no price is known for the machine 'p2\.xlarge'"):
        find_machine(prices, "p2.xlarge")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no machine"),
        ("[a\n", "not valid TOML"),
        ("[a]\ncores = 2", "a has no dollars_per_hour"),
        ("[a]\ndollars_per_hour = -1", "dollars_per_hour cannot be -1"),
        ("[a]\ndollars_per_hour = nan", "dollars_per_hour cannot be"),
        ('[a]\ndollars_per_hour = "1"', "dollars_per_hour cannot be '1'"),
        ("[a]\ndollars_per_hour = true", "dollars_per_hour cannot be True"),
        ("[a]\ndollars_per_hour = 1\ncores = 1.5", "cores cannot be"),
        ("[a]\ndollars_per_hour = 1\nspeed = 3", "unknown key 'speed'"),
        ("[a]\ndollars_per_hour = 1\nnetwork = 'fast'", "prices cannot be 'fast'"),
        ("[p2.xlarge]\ndollars_per_hour = 1", "not a table with prices"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_prices(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read_prices(tmp_path / "none.toml")


@given(st.integers(1, 10**9))
def test_half_a_cent_is_rounded_up(tenths: int) -> None:
    exact = Fraction(tenths, 1000)
    cents = exact * 100
    expected = cents.numerator // cents.denominator + (cents % 1 >= Fraction(1, 2))
    assert to_cents(Decimal(tenths) / 1000) == Decimal(expected) / 100
