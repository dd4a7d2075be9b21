"""The page of `tenor insights`: what customers say, with examples from the reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tenor.reports import page
from tenor.reports.page import Section
from tenor.reports.plots.negative import driving_phrases, share_over_time, worst_groups
from tenor.reports.values import counted, readable

MOST_ERRORS = 30
MOST_CLUSTERS = 20

Values = Mapping[str, Any]


def insights_section(values: Values) -> Section:
    """Return everything that the page shows; `values` are the result of `tenor.find_insights`."""
    phrases = values["phrases"]
    plots = page.plots(
        [
            share_over_time(values["over_time"]),
            worst_groups(values["groups"], values["by"] or "", values["negative_share"]),
            driving_phrases(phrases["negative"], "negative"),
            driving_phrases(phrases["positive"], "positive"),
        ]
    )
    cards = [
        *plots,
        *(_phrase_card(f"Phrases of {side} reviews", phrases[side]) for side in ("negative", "positive")),
        *_rising(values["rising"]),
        *_groups(values),
        *_errors(values["label_errors"]),
        *_clusters(values["near_duplicates"], values["similarity"]),
    ]
    files = ", ".join(readable(file) for file in values["files"])
    head = [page.faint([files]), f'<p class="lead">{escape(_lead(values))}</p>']
    return Section("What customers say", head, [page.tiles(_tiles(values)), page.grid(cards)])


def insights_page(values: Values) -> str:
    """Return the whole page."""
    section = insights_section(values)
    header = f"<header><h1>{escape(section.title)}</h1>{''.join(section.head)}</header>"
    footer = "<footer>Written by Tenor. This page is self-contained: it loads nothing from the network.</footer>"
    return page.page(f"{section.title} – Tenor insights", [header, *section.body, footer])


def json_beside(out: Path) -> Path:
    """Return the path of the JSON file beside a page."""
    return out.with_suffix(".json")


def _lead(values: Values) -> str:
    low, high = values["negative_interval"]
    text = f"The model judges {values['negative_share']:.1%} of the reviews as negative ({low:.1%} to {high:.1%})."
    if negative := values["phrases"]["negative"]:
        text += f" Complaints speak most of: {', '.join(row['phrase'] for row in negative[:5])}."
    if values["rising"]:
        text += f" More frequent in the last {values['period']}: {values['rising'][0]['phrase']}."
    return text


def _tiles(values: Values) -> list[tuple[str, str, str]]:
    low, high = values["negative_interval"]
    lost = sum([*values["dropped"].values(), *values["rejected"].values()])
    tiles = [
        ("Reviews", f"{values['rows']:,}", f"{values['rows_read']:,} rows read, {lost:,} not used"),
        ("Negative", f"{values['negative_share']:.1%}", f"95 % interval {low:.1%} to {high:.1%}"),
    ]
    if values["labelled_rows"]:
        labelled, rows = values["labelled_negative_share"], values["labelled_rows"]
        tiles.append(("Negative by label", f"{labelled:.1%}", f"of {counted(rows, 'labelled review')}"))
    if values["by"]:
        tiles.append(("Groups", f"{values['num_groups']:,}", f"by {readable(values['by'])[:60]}"))
    return tiles


def _phrase_card(title: str, phrases: Sequence[Values]) -> str:
    if not phrases:
        return page.card(title, page.faint(["No phrase stands out."]), wide=True)
    head = ["phrase", "reviews", "negative", "contribution", "also said"]
    rows = [
        [row["phrase"], row["rows"], _percent(row["negative_share"]), row["contribution"], _variants(row["variants"])]
        for row in phrases
    ]
    return page.card(title, page.table(head, rows) + "".join(map(_quotes, phrases)), wide=True)


def _rising(phrases: Sequence[Values]) -> list[str]:
    if not phrases:
        return []
    head = ["phrase", "reviews in the last period", "share now", "share before", "negative", "z"]
    rows = [
        [
            row["phrase"],
            row["rows_recent"],
            _percent(row["share_recent"]),
            _percent(row["share_before"]),
            _percent(row["negative_share"]),
            row["z"],
        ]
        for row in phrases
    ]
    note = "Phrases whose share of reviews in the last period is significantly larger than before."
    return [page.card("Rising phrases", page.table(head, rows, note) + "".join(map(_quotes, phrases)), wide=True)]


def _groups(values: Values) -> list[str]:
    if not values["groups"]:
        return []
    head = [readable(values["by"])[:40], "reviews", "negative", "low", "high"]
    rows = [
        [row["group"], row["rows"], _percent(row["negative_share"]), _percent(row["low"]), _percent(row["high"])]
        for row in values["groups"]
    ]
    return [page.folded("Worst groups as a table", page.table(head, rows))]


def _errors(errors: Sequence[Values]) -> list[str]:
    if not errors:
        return []
    head = ["review", "label", "probability of the label", "place"]
    rows = [
        [row.get("text", ""), row["label"], f"{row['probability']:.2g}", _place(row)] for row in errors[:MOST_ERRORS]
    ]
    note = "The label and the text disagree, according to a model that has not seen the review. Most suspicious first."
    return [page.card("Suspected label errors", page.table(head, rows, note), wide=True)]


def _clusters(clusters: Sequence[Values], similarity: float) -> list[str]:
    if not clusters:
        return []
    rows = [[row["text"], row["size"], ", ".join(map(_place, row["members"][:3]))] for row in clusters[:MOST_CLUSTERS]]
    note = f"{counted(len(clusters), 'cluster')} of reviews with a word similarity of at least {similarity:g}."
    return [page.card("Near-duplicates", page.table(["review", "reviews", "places"], rows, note), wide=True)]


def _quotes(row: Values) -> str:
    """Return the examples of a phrase, folded."""
    quotes = "".join(
        f"<blockquote>{escape(page.cut(readable(example['text'])))} "
        f'<span class="faint">{escape(_place(example))}</span></blockquote>'
        for example in row["examples"]
    )
    return f"<details><summary>Reviews with “{escape(readable(row['phrase']))}”</summary>{quotes}</details>"


def _variants(variants: Sequence[Values]) -> str:
    return ", ".join(f"{row['phrase']} ({row['rows']:,})" for row in variants) or "–"


def _place(row: Values) -> str:
    return f"{readable(Path(str(row['file'])).name)}:{row['line']}"


def _percent(value: float) -> str:
    return f"{value:.1%}"
