"""Frequencies from prepared data, against the rows that real batches touch."""

from pathlib import Path

import numpy as np
import pytest

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import UsageError
from tenor.planning.inputs.data_folder import read_frequencies, read_prepare_rate
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.training.recipe import complete
from tenor.training.settings import TrainSettings
from tenor.training.tasks import make_task
from tenor.training.tasks.review_batches import NGRAMS, WORDS


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frequencies")
    generate(folder / "reviews.jsonl", GenerateSettings(rows=4000))
    prepare([folder / "reviews.jsonl"], folder / "data", PrepareSettings(workers=1, vocab_size=3000))
    return folder / "data"


@pytest.mark.parametrize("batch", [32, 256])
@pytest.mark.parametrize("model", ["wide-deep", "deep"])
def test_predicted_rows_are_those_of_real_batches(data: Path, batch: int, model: str) -> None:
    task = make_task(data, complete(TrainSettings(batch_size=batch, model=model), None))
    try:
        found = read_frequencies(data, task.describe()["model"], task.describe()["data_sha256"])
        batches = [task.load(0, k, slice(0, 0)) for k in range(task.order.num_rows // batch)]
    finally:
        task.close()
    for table in (WORDS, NGRAMS) if model == "wide-deep" else (WORDS,):
        real = np.mean([len(one.rows[table]) for one in batches])
        assert found.expected(table, batch) == pytest.approx(real, rel=0.05), table
    assert set(found.whole.spectra) == ({WORDS, NGRAMS} if model == "wide-deep" else {WORDS})


def test_several_batches_together(data: Path) -> None:
    task = make_task(data, complete(TrainSettings(batch_size=64), None))
    try:
        found = read_frequencies(data, task.describe()["model"], "")
        touched = [set(task.load(0, k, slice(0, 0)).rows[NGRAMS].tolist()) for k in range(32)]
    finally:
        task.close()
    unions = [len(set().union(*touched[start : start + 8])) for start in range(0, 32, 8)]
    assert found.together(NGRAMS, 8 * 64) == pytest.approx(np.mean(unions), rel=0.05)


def test_other_data_is_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="not the data that the run was trained on"):
        read_frequencies(data, {"deep": {"vocab_size": 3000, "length": 400}}, "00" * 32)


def test_the_rate_of_preparing(data: Path, tmp_path: Path) -> None:
    rate = read_prepare_rate(data)
    assert rate is not None and rate > 1000
    assert read_prepare_rate(tmp_path) is None
    (tmp_path / "job.json").write_text('{"bytes": "x"}')
    assert read_prepare_rate(tmp_path) is None
