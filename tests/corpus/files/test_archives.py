"""The sizes that a file declares are checked before its content is read."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults.hostile import JSON, zipped

from tenor.corpus.columns import Columns, Wanted
from tenor.corpus.files import archives
from tenor.corpus.formats import parquet
from tenor.corpus.formats.registry import has_known_suffix
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError


def test_declared_sizes_are_checked_before_any_member_is_read(tmp_path: Path) -> None:
    """A hundred members, each within the limit, that together unpack to more than the limit."""
    (tmp_path / "r.zip").write_bytes(zipped({f"{n}.jsonl": JSON + b" " * (1 << 20) for n in range(100)}))
    with pytest.raises(CorpusError, match="times its size"):
        find_sources([tmp_path / "r.zip"], Wanted())


def test_members_that_declare_more_bytes_than_the_archive_has(tmp_path: Path) -> None:
    data = bytearray(zipped({"r.jsonl": JSON}))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 20 : entry + 24] = (1 << 30).to_bytes(4, "little")  # its compressed size
    with pytest.raises(CorpusError, match="damaged zip data: its members declare more bytes"):
        archives.members(io.BytesIO(data), "r.zip", has_known_suffix)


def test_sizes_in_a_parquet_footer_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    pq.write_table(
        pa.table({"text": ["x " * 500_000] * 80, "rating": [5] * 80}), out, use_dictionary=False, compression="zstd"
    )
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *args, **options: pytest.fail("it was read"))
    with pytest.raises(CorpusError, match=r"f: unpacks to more than 250 times its size; .* save it again"):
        list(parquet.read(out, Columns("text", "rating"), "f"))
