"""Words that people rate by, in their order."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ascending"]

# Each line is one kind of scale; words that may stand for each other share a place.
_SCALES = tuple(
    tuple(place.split("/") for place in line.split())
    for line in """
    awful/terrible/dreadful poor/bad fair/okay/ok/average/medium good great/very_good excellent/perfect
    never rarely/seldom sometimes often/frequently/usually always
    none/no minimal/very_low low/slight/mild medium/moderate/mid/middle high/severe very_high/extreme/critical
    tiny/xs small/s medium/m large/l huge/xl xxl
    strongly_disagree disagree neutral/undecided agree strongly_agree
    very_dissatisfied dissatisfied neutral satisfied very_satisfied
    beginner/novice intermediate advanced expert
    cold cool warm hot
    """.strip().splitlines()
)


def ascending(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in the order that their words have on a common scale, () where they are on none."""
    words = {level: level.strip().lower().replace(" ", "_").replace("-", "_") for level in levels}
    for scale in _SCALES:
        places = {word: at for at, place in enumerate(scale) for word in place}
        found = [places.get(word) for word in words.values()]
        if None not in found and len(set(found)) == len(found):
            return tuple(sorted(words, key=lambda level: places[words[level]]))
    return ()
