"""Text in other encodings, converted to UTF-8 while it is read, in bounded memory."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, cast

from tenor.errors import CorpusError

_CHUNK = 1 << 18
_INVALID = "tenor-invalid"  # name of a codec error handler, registered when a file first needs it


def transcoded(stream: BinaryIO, encoding: str, where: str) -> BinaryIO:
    """The same text as UTF-8. Bytes invalid in `encoding` become invalid UTF-8, so that their row is rejected.

    Reading raises CorpusError if the text cannot be decoded at all, as UTF-16 without a byte order mark.
    """
    codecs.register_error(_INVALID, lambda error: ("\udc80", cast(UnicodeDecodeError, error).end))
    return cast(BinaryIO, io.BufferedReader(_Transcoded(stream, encoding, where), _CHUNK))


class _Transcoded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, encoding: str, where: str) -> None:
        self.encoding, self.where = encoding, where
        self.stream, self.decoder = stream, codecs.getincrementaldecoder(encoding)(_INVALID)
        self.held, self.is_done = memoryview(b""), False

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        while not self.held and not self.is_done:
            data = self.stream.read(_CHUNK)
            self.is_done = not data
            self.held = memoryview(self._decode(data).encode("utf-8", "surrogatepass"))
        size = min(len(place), len(self.held))
        place[:size], self.held = self.held[:size], self.held[size:]
        return size

    def _decode(self, data: bytes) -> str:
        try:
            return self.decoder.decode(data, self.is_done)
        except UnicodeError as error:
            remedy = "check --encoding; without a byte order mark, give utf-16-le or utf-16-be"
            raise CorpusError(f"is not {self.encoding} text: {error}", where=self.where, remedy=remedy) from error
