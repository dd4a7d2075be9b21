"""bfloat16 trains if the processor supports it; otherwise an error gives the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.training import run, weights

from tenor.errors import UsageError
from tenor.models.deep.cells import CELLS, CellTraits
from tenor.training.optim import precision

CPU = torch.device("cpu")
ABLE = [cell for cell in CELLS if precision._why_not(cell, CPU) is None]


def test_some_cells_train_in_bf16() -> None:
    assert "qrnn" in ABLE and "gru" in ABLE


@pytest.mark.parametrize("cell", ["gru", "qrnn"])
def test_a_run_learns_in_bf16(data: Path, tmp_path: Path, cell: str) -> None:
    half = run(data, tmp_path / "half", precision="bf16", cell=cell, lr=0.01)
    full = run(data, tmp_path / "full", cell=cell, lr=0.01)
    assert half["valid"]["accuracy"] > half["valid"]["majority_baseline"]["accuracy"]
    assert half["valid"]["auc"] == pytest.approx(full["valid"]["auc"], abs=0.1)
    assert half["weights_sha256"] != full["weights_sha256"]  # it did compute in another precision
    assert {weight.dtype.name for weight in weights(tmp_path / "half").values()} == {"float32"}


def test_a_cell_without_bf16_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unable(torch.nn.Module):
        def __init__(self, width: int, hidden: int) -> None:
            super().__init__()

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("could not create a primitive. Run with ONEDNN_VERBOSE")

    monkeypatch.setattr(precision, "Unable", Unable, raising=False)
    monkeypatch.setitem(CELLS, "lstm", CellTraits("tenor.training.optim.precision:Unable"))
    with pytest.raises(UsageError, match=r"lstm.*could not create a primitive\).*precision fp32 or cell gru"):
        precision.check_precision("bf16", "lstm", CPU)
    precision.check_precision("fp32", "lstm", CPU)


@pytest.mark.skipif("lstm" in ABLE, reason="this processor trains LSTMs in bf16")
def test_this_processor_refuses_lstm_before_training(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="precision bf16 cannot train the cell lstm"):
        run(data, tmp_path / "run", precision="bf16")
