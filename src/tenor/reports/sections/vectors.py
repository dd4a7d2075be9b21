"""The section of word vectors: a map of the commonest words, result and settings."""

from __future__ import annotations

from tenor.reports import page
from tenor.reports.page import Section
from tenor.reports.plots.word_map import draw_map
from tenor.reports.vectors_data import VectorsData


def vectors_section(vectors: VectorsData) -> Section:
    """Return everything that a page shows about word vectors."""
    cards = [page.plot(draw_map(vectors.table, vectors.sentiments))]
    for title in ("result", "settings"):
        if isinstance(values := vectors.config.get(title), dict):
            cards.append(page.card(title.capitalize(), page.pairs(values)))
    facts = f"Word vectors by Tenor: {len(vectors.table.words):,} words of {vectors.table.matrix.shape[1]} numbers"
    return Section(vectors.name, [page.faint([facts])], [page.grid(cards)])
