"""Stop words. They are off by default, because the usual lists contain "not"."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tenor.errors import UsageError
from tenor.preparation.tokeniser.characters import lower_case
from tenor.store.trusted import read_bytes

MAX_BYTES = 16 << 20  # of a file of stop words
# To add a language, add its list here; words are brought into the tokeniser's spelling below.
LISTS = {
    "english": """
a about above after again against ain all am an and any are aren aren't as at be because been before being below between
both but by can couldn couldn't d did didn didn't do does doesn doesn't doing don don't down during each few for from
further had hadn hadn't has hasn hasn't have haven haven't having he her here hers herself him himself his how i if in
into is isn isn't it it's its itself just ll m ma me mightn mightn't more most mustn mustn't my myself needn needn't no
nor not now o of off on once only or other our ours ourselves out over own re s same shan shan't she she's should
should've shouldn shouldn't so some such t than that that'll the their theirs them themselves then there these they this
those through to too under until up ve very was wasn wasn't we were weren weren't what when where which while who whom
why will with won won't wouldn wouldn't y you you'd you'll you're you've your yours yourself yourselves
""",
}


def read_stopwords(name: str | None) -> tuple[str, ...]:
    """Read a list of stop words.

    Args:
        name: A name in LISTS, or a text file of words separated by white space; None for no stop words.

    Returns:
        The words, sorted, in the tokeniser's spelling.
    """
    if not name:
        return ()
    try:
        text = LISTS[name] if name in LISTS else read_bytes(Path(name).resolve(), MAX_BYTES, UsageError).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--stopwords cannot be read: {error}",
            where=name,
            remedy=f"give {', '.join(LISTS)}, or the name of a text file",
        ) from error
    return tuple(sorted(set(lower_case(unicodedata.normalize("NFC", text)).split())))
