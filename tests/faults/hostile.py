"""Files that try to break the reader, each with the expected counts or the expected error."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from helpers.corpora import make_reviews

GOOD = make_reviews(30)
LINES = [json.dumps({"text": r.text, "rating": r.rating}, ensure_ascii=False).encode() + b"\n" for r in GOOD]
JSON = b"".join(LINES)
CSV = b"text,rating\n" + b"".join(f"{r.text},{r.rating}\n".encode() for r in GOOD)
CSV_LINES = CSV.splitlines(keepends=True)[1:]
TSV = CSV.replace(b",", b"\t")
ARRAY = b"[" + b",\n".join(line.strip() for line in LINES) + b"]\n"
_STRANGE = (b"7" * 400, b"1e400", b"NaN", b"-inf", b"0x5", b"5 5")
_CSV_LABELS = b"".join(b"some words here," + label + b"\n" for label in _STRANGE)
_FT_LABELS = b"".join(b"__label__" + label + b" words\n" for label in (*_STRANGE[:4], b""))
FT = b"".join(f"__label__{1 if r.rating < 3 else 2} {r.text}\n".encode() for r in GOOD)


@dataclass(frozen=True)
class Case:
    """A file and its outcome: these counts, where `more` is the good rows beyond 30, or CorpusError with `fails`."""

    file: str
    data: bytes
    rejected: dict[str, int] = field(default_factory=dict)
    more: int = 0
    dropped: int = 0
    empty: int = 0
    fails: str = ""


def _json(line: bytes, reason: str = "", **more: int) -> tuple[str, bytes, dict[str, int], dict[str, int]]:
    return "r.jsonl", JSON + line + b"\n", {reason: 1} if reason else {}, more


def _rated(rating: bytes) -> bytes:
    return b'{"text": "a fine unique thing", "rating": ' + rating + b"}"


_LINES = {
    "not json": _json(b"this is not json", "invalid JSON"),
    "half an object": _json(b'{"text": "cut off', "invalid JSON"),
    "two objects": _json(b'{"text": "a b", "rating": 5} {"text": "c", "rating": 1}', "invalid JSON"),
    "trailing comma": _json(b'{"text": "a b", "rating": 5,}', "invalid JSON"),
    "array": _json(b"[1, 2, 3]", "not a JSON object"),
    "number alone": _json(b"12", "not a JSON object"),
    "invalid utf-8": _json(b'{"text": "\xff\xfe broken", "rating": 5}', "invalid UTF-8"),
    "overlong utf-8": _json(b'{"text": "\xc0\xaf", "rating": 5}', "invalid UTF-8"),
    "raw surrogate": _json(b'{"text": "\xed\xa0\x80 x", "rating": 5}', "invalid UTF-8"),
    "lone surrogate": _json(rb'{"text": "bad \ud800 half", "rating": 5}', "lone surrogate"),
    "low surrogate first": _json(rb'{"text": "bad \udc00\ud800", "rating": 5}', "lone surrogate"),
    "surrogate pair": _json(rb'{"text": "smile \ud83d\ude00 here", "rating": 5}', more=1),
    "raw nul": _json(b'{"text": "a \x00 b", "rating": 5}', "invalid JSON"),
    "escaped nul": _json(rb'{"text": "before \u0000 after", "rating": 5}', more=1),
    "raw tab": _json(b'{"text": "a \t b", "rating": 5}', "invalid JSON"),
    "bad escape": _json(rb'{"text": "a \x41 b", "rating": 5}', "invalid JSON"),
    "short escape": _json(rb'{"text": "a \u12", "rating": 5}', "invalid JSON"),
    "u+2028 and u+0085": _json('{"text": "one\u2028two\u0085three", "rating": 5}'.encode(), more=1),
    "carriage returns": ("r.jsonl", JSON.replace(b"\n", b"\r\n"), {}, {}),
    "only carriage returns": ("r.jsonl", JSON + JSON.replace(b"\n", b"\r"), {"invalid JSON": 1}, {}),
    "byte order mark": ("r.jsonl", b"\xef\xbb\xbf" + JSON, {}, {}),
    "blank lines": ("r.jsonl", b"\n \n" + JSON.replace(b"\n", b"\n\n"), {}, {}),
    "bad escape elsewhere": _json(rb'{"a": "\x41", "text": "a fine b", "rating": 5}', "invalid JSON"),
    "half an escape elsewhere": _json(rb'{"a": ["\u12g4"], "text": "a fine b", "rating": 5}', "invalid JSON"),
    "lone surrogate elsewhere": _json(rb'{"a": "\ud800", "text": "a fine b", "rating": 5}', more=1),
    "invalid utf-8 elsewhere": _json(b'\n{"a": "\xff", "text": "a fine b", "rating": 5}\n \n', "invalid UTF-8"),
    "no newline at the end": ("r.jsonl", JSON[:-1], {}, {}),
    "deep nesting": _json(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "deep but sound": _json(b'{"a": ' + b"[" * 80 + b"]" * 80 + b', "text": "deep down", "rating": 5}', more=1),
    "long number": _json(_rated(b"5" * 5000), "bad rating"),
    "long number elsewhere": _json(b'{"n": ' + b"9" * 5000 + b', "text": "long one", "rating": 5}', more=1),
    "nan": _json(_rated(b"NaN"), "bad rating"),
    "infinite": _json(_rated(b"1e999"), "bad rating"),
    "infinity": _json(_rated(b"-Infinity"), "bad rating"),
    "true": _json(_rated(b"true"), "bad rating"),
    "null rating": _json(_rated(b"null"), "missing rating"),
    "full-width digit": _json(_rated('"１"'.encode()), "bad rating"),
    "object rating": _json(_rated(b'{"stars": 5}'), "bad rating"),
    "string rating": _json(_rated(b'"5.0"'), more=1),
    "exponent rating": _json(_rated(b"50e-1"), more=1),
    "leading zero": _json(_rated(b"05"), "invalid JSON"),
    "neutral": _json(_rated(b"3"), dropped=1),
    "six stars": _json(_rated(b"6"), dropped=1),
    "repeated key": _json(b'{"text": "a b", "rating": 5, "rating": 1}', "repeated key"),
    "repeated other key": _json(b'{"a": 1, "a": 2, "text": "other twice", "rating": 5}', more=1),
    "escaped key": _json(rb'{"te\u0078t": "key in disguise", "rating": 5}', more=1),
    "no text": _json(b'{"rating": 5}', "missing text"),
    "number as text": _json(b'{"text": 7, "rating": 5}', "text is not a string"),
    "no rating": _json(b'{"text": "nothing said"}', "missing rating"),
    "empty text": _json(b'{"text": "", "rating": 5}', empty=1),
    "marks only": _json(b'{"text": "... --- ...", "rating": 5}', empty=1),
    "a long line": _json(b'{"text": "' + b"long " * (4 << 20) + b'", "rating": 5}', "line too long"),
    "csv: shifted": ("r.csv", CSV + b"too,many,columns\nfew\n", {"wrong number of columns": 2}, {}),
    "csv: quoted newline": ("r.csv", CSV + b'"two\nlines, one row",5\n', {}, {"more": 1}),
    "csv: doubled quotes": ("r.csv", CSV + b'"said ""well done"" twice",5\n', {}, {"more": 1}),
    "csv: after a quote": ("r.csv", CSV + b'"closed" early,5\n', {"text after a closing quote": 1}, {}),
    "csv: open quote": ("r.csv", CSV + b'"never closed,5\n', {"quote not closed": 1}, {}),
    "csv: wrong quote": ("r.csv", CSV + b'"open,5\nfine,1\n"said",5\n', {"text after a closing quote": 3}, {}),
    "csv: a long line": ("r.csv", CSV + b"long " * (4 << 20) + b",5\n", {"line too long": 1}, {}),
    "tsv: no quoting": ("r.tsv", TSV + b'"Well" it is\t5\n"open one\t5\nends in one"\t1\n', {}, {"more": 3}),
    "tsv: quoted newline": ("r.tsv", TSV + b'"two\nlines, one\trow"\t5\n', {}, {"more": 1}),
    "csv: stray quote": ("r.csv", CSV + b'a 5" pipe,5\n', {}, {"more": 1}),
    "csv: crlf": ("r.csv", CSV.replace(b"\n", b"\r\n"), {}, {}),
    "csv: bad rating": ("r.csv", CSV + b"fine words here,great\n,5\n", {"bad rating": 1}, {"empty": 1}),
    "csv: nul": ("r.csv", CSV + b"nul \x00 inside,5\n", {}, {"more": 1}),
    "fasttext: no label": ("r.txt", FT + b"no label here\n", {"no label": 1}, {}),
    "fasttext: several": ("r.txt", FT + b"__label__1 __label__2 both\n", {"several labels": 1}, {}),
    "fasttext: label only": ("r.txt", FT + b"__label__1\n__label__ text\n", {"no label": 1}, {"empty": 1}),
    "fasttext: strange labels": ("r.txt", FT + _FT_LABELS, {"bad rating": 4, "no label": 1}, {}),
    "fasttext: nul": ("r.txt", FT + b"__label__1 nul \x00 inside\n", {}, {"more": 1}),
    "fasttext: a long line": ("r.txt", FT + b"__label__1 " + b"long " * (4 << 20), {"line too long": 1}, {}),
    "400 digits": _json(_rated(b"7" * 400), "bad rating"),
    "quoted 400 digits": _json(_rated(b'"' + b"7" * 400 + b'"'), "bad rating"),
    "1e400": _json(_rated(b"1e400"), "bad rating"),
    "tiny": _json(_rated(b"1e-400"), dropped=1),
    "array rating": _json(_rated(b"[5]"), "bad rating"),
    "surrogate in the rating": _json(_rated(rb'"\ud800"'), "lone surrogate"),
    "csv: strange labels": ("r.csv", CSV + _CSV_LABELS, {"bad rating": 6}, {}),
}


def _parquet() -> bytes:
    texts = [*(r.text for r in GOOD), None, "no rating here", "not a number"]
    table = pa.table({"text": texts, "rating": [*(float(r.rating) for r in GOOD), 5.0, None, float("nan")]})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=7)
    return out.getvalue()


def _repeated() -> bytes:
    texts, ratings = pa.array([r.text for r in GOOD]), pa.array([r.rating for r in GOOD])
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([texts, ratings, texts], names=["text", "rating", "text"]), out)
    return out.getvalue()


def _flipped() -> bytes:
    data = bytearray(gzip.compress(JSON))
    data[-6] ^= 1  # within the CRC
    return bytes(data)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def _wrong_crc() -> bytes:
    data = zipped({"r.jsonl": JSON})
    crc = zlib.crc32(JSON).to_bytes(4, "little")
    return data.replace(crc, bytes(4))


def _encrypted() -> bytes:
    """Return a zip with the encryption flag set in both headers of its member."""
    data = bytearray(zipped({"r.jsonl": JSON}))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _table(texts: list[str] | pa.Array, ratings: pa.Array, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": texts, "rating": ratings}), out, **options)
    return out.getvalue()


def _typed(kind: pa.DataType, value: object) -> bytes:
    return _table([r.text for r in GOOD], pa.array([value] * len(GOOD), kind))


def _decimals() -> bytes:
    return _table([r.text for r in GOOD], pa.array([Decimal(r.rating) for r in GOOD], pa.decimal128(9, 2)))


def _dictionary_bomb() -> bytes:
    """Return about 800 bytes that expand to 1.2 GB: one long text, repeated by reference."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), ["x" * 300_000])
    return _table(texts, pa.array([5] * 4096), compression="zstd", store_schema=False)


def _packed_bomb() -> bytes:
    return _table(["x " * (1 << 20)] * 40, pa.array([5] * 40), compression="zstd", use_dictionary=False)


def _long_values() -> bytes:
    texts = [*(r.text for r in GOOD), "long " * (4 << 20)]
    return _table(texts, pa.array([*(r.rating for r in GOOD), 5]), compression="zstd", row_group_size=10)


_PARQUET = _parquet()
_FAILING = {
    "gz: truncated": Case("r.jsonl.gz", gzip.compress(JSON)[:-20], fails="damaged gz"),
    "gz: wrong crc": Case("r.jsonl.gz", _flipped(), fails="damaged gz"),
    "gz: empty": Case("r.jsonl.gz", gzip.compress(b""), fails="is empty"),
    "gz: garbage after it": Case("r.jsonl.gz", gzip.compress(JSON) + b"garbage", fails="damaged gz"),
    "gz: is none": Case("r.jsonl.gz", JSON, fails="is not gz data"),
    "bz2: truncated": Case("r.jsonl.bz2", bz2.compress(JSON)[:-20], fails="damaged bz2"),
    "bz2: garbage after it": Case("r.jsonl.bz2", bz2.compress(JSON) + b"garbage", fails="damaged bz2"),
    "bz2: a bomb": Case("r.jsonl.bz2", bz2.compress(JSON + b" " * (80 << 20)), fails="times its size"),
    "zst: truncated": Case("r.jsonl.zst", pa.compress(JSON, "zstd", asbytes=True)[:-20], fails="damaged zst"),
    "parquet: truncated": Case("r.parquet", _PARQUET[:-100], fails="damaged Parquet"),
    "parquet: repeated column": Case("r.parquet", _repeated(), fails="2 columns are called 'text'"),
    "csv: repeated column": Case("r.csv", CSV.replace(b"rating", b"rating,text"), fails="2 columns are called 'text'"),
    "empty": Case("r.jsonl", b"", fails="is empty"),
    "white space": Case("r.jsonl", b" \n\n", fails="is empty"),
    "csv: header only": Case("r.csv", CSV[:12], fails="no rows"),
    "csv: header not utf-8": Case("r.csv", b"\xff\xfd,rating\n", fails="not a header"),
    "utf-16 that is not said": Case("r.csv", CSV.decode().encode("utf-16"), fails="give encoding utf-16"),
    "array: cut off": Case("r.json", ARRAY[:-40], fails="the JSON array has no end"),
    "array: empty": Case("r.json", b"[ ]", fails="is empty"),
    "zip: truncated": Case("r.zip", zipped({"r.jsonl": JSON})[:-30], fails="damaged zip"),
    "zip: wrong crc": Case("r.zip", _wrong_crc(), fails="damaged zip"),
    "zip: encrypted": Case("r.zip", _encrypted(), fails="r.jsonl is encrypted"),
    "zip: a bomb": Case("r.zip", zipped({"r.jsonl": JSON + b" " * (80 << 20)}), fails="times its size"),
    "zip: no files": Case("r.zip", zipped({}), fails="contains no file"),
    "zip: packed twice": Case("r.zip", zipped({"r.jsonl.gz": gzip.compress(JSON)}), fails="compressed inside a zip"),
    "zip: other method": Case("r.zip", zipped({"r.jsonl": JSON}, zipfile.ZIP_BZIP2), fails="deflate"),
    "parquet: packed": Case("r.parquet.gz", gzip.compress(_PARQUET), fails="Parquet compressed as gz"),
    "parquet: map": Case("r.parquet", _typed(pa.map_(pa.string(), pa.int8()), [("a", 1)]), fails="holds map"),
    "parquet: list": Case("r.parquet", _typed(pa.list_(pa.int8()), [1]), fails="holds list"),
    "parquet: struct": Case("r.parquet", _typed(pa.struct({"a": pa.int8()}), {"a": 1}), fails="holds struct"),
    "parquet: dates": Case("r.parquet", _typed(pa.timestamp("s"), 1), fails="holds timestamp"),
    "parquet: a dictionary bomb": Case("r.parquet", _dictionary_bomb(), fails="times its size"),
    "parquet: a packed bomb": Case("r.parquet", _packed_bomb(), fails="times its size"),
    "parquet: footer": Case("r.parquet", _PARQUET[:-2500] + bytes(2492) + _PARQUET[-8:], fails="damaged Parquet"),
}

CASES = {
    **{name: Case(file, data, rejected, **more) for name, (file, data, rejected, more) in _LINES.items()},
    "gz in two members": Case("r.jsonl.gz", gzip.compress(b"".join(LINES[:9])) + gzip.compress(b"".join(LINES[9:]))),
    "bz2 in two streams": Case("r.jsonl.bz2", bz2.compress(b"".join(LINES[:9])) + bz2.compress(b"".join(LINES[9:]))),
    "zst": Case("r.jsonl.zst", pa.compress(JSON, "zstd", asbytes=True)),
    "json array": Case("r.json", ARRAY),
    "json array over many lines": Case("r.json", json.dumps(json.loads(ARRAY), indent=2).encode()),
    "json array without a name": Case("r", ARRAY),
    "array: bad elements": Case(
        "r.json", ARRAY[:-2] + b', {"text": }, 7]\n', {"invalid JSON": 1, "not a JSON object": 1}
    ),
    "zip": Case("r.zip", zipped({"a.jsonl": b"".join(LINES[:9]), "b.csv": CSV[:12] + b"".join(CSV_LINES[9:])})),
    "zip beside other files": Case("r.zip", zipped({"r.jsonl": JSON, "README.md": b"x", "__MACOSX/._r.jsonl": b"\0"})),
    "zip without a name": Case("r", zipped({"data": JSON})),
    "parquet: decimals": Case("r.parquet", _decimals()),
    "parquet: a long value": Case("r.parquet", _long_values(), {"line too long": 1}),
    "parquet": Case("r.parquet", _PARQUET, {"missing text": 1, "missing rating": 1, "bad rating": 1}),
    **_FAILING,
}
