"""The words of the synthetic corpus: clauses that are clearly positive or negative, and neutral filler words."""

from __future__ import annotations

import itertools

ASPECTS = [
    "sound",
    "picture",
    "screen",
    "battery",
    "fabric",
    "colour",
    "taste",
    "smell",
    "handle",
    "cable",
    "story",
    "acting",
    "plot",
    "service",
    "delivery",
    "packaging",
    "manual",
    "lens",
    "motor",
    "strap",
]
GOOD = ["good", "great", "lovely", "reliable", "comfortable", "sturdy", "delightful", "pleasant", "useful", "superb"]
BAD = ["bad", "poor", "ugly", "flimsy", "uncomfortable", "faulty", "dreadful", "annoying", "useless", "terrible"]
MILD = ("", "fairly ", "rather ", "quite ")
STRONG = ("really ", "very ", "extremely ", "absolutely ")
_SYLLABLES = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "zu",
    "lan",
    "mer",
    "tis",
    "dor",
    "pel",
]
TALK = [
    "the",
    "a",
    "it",
    "this",
    "that",
    "i",
    "we",
    "my",
    "our",
    "for",
    "with",
    "from",
    "on",
    "in",
    "to",
    "of",
    "and",
    "was",
    "had",
    "have",
    "after",
    "before",
    "when",
    "while",
    "box",
    "shop",
    "week",
    "month",
    "price",
    "order",
    "model",
    "size",
    "room",
    "kitchen",
    "car",
    "phone",
    "friend",
    "brother",
    "sister",
    "house",
    "table",
    "bought",
    "used",
    "opened",
    "put",
    "took",
    "came",
    "went",
    "gave",
    "found",
    "wanted",
    "needed",
    "second",
    "third",
    "another",
    "other",
    "new",
    "old",
]


def opinions(positive: bool, strong: bool) -> list[str]:
    """Every clause of one opinion and strength, stated directly or by negating the opposite."""
    right, wrong = (GOOD, BAD) if positive else (BAD, GOOD)
    degrees = STRONG if strong else MILD
    plain = [f"the {a} is {d}{w}" for a, d, w in itertools.product(ASPECTS, degrees, right)]
    if strong:
        return plain + [f"the {a} is not {w} at all" for a, w in itertools.product(ASPECTS, wrong)]
    denied = [f"the {a} is not {w}" for a, w in itertools.product(ASPECTS, wrong)]
    return plain + denied + [f"i don't think the {a} is {w}" for a, w in itertools.product(ASPECTS, wrong)]


def talk(words: int) -> list[str]:
    """The given number of filler words: common words first, then made-up names."""
    made = ("".join(parts) for size in (2, 3, 4, 5) for parts in itertools.product(_SYLLABLES, repeat=size))
    return list(itertools.islice(itertools.chain(TALK, made), words))
