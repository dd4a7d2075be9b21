"""Options that do not belong to the engine are refused."""

from __future__ import annotations

import pytest
from engines.installed import needs

from tenor.engines.choose import make_engine
from tenor.engines.settings import EngineSettings
from tenor.errors import UsageError


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings("local", cluster="tcp://127.0.0.1:1"),
        EngineSettings("local", dask_report="x.html"),
        EngineSettings("spark", tls_ca="x"),
        pytest.param(EngineSettings("dask", cluster="tls://127.0.0.1:1"), marks=needs("dask")),
    ],
)
def test_settings_that_do_not_fit(settings: EngineSettings) -> None:
    with pytest.raises(UsageError):
        make_engine(settings)
