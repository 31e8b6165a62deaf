"""Format numbers, symbols and table cells for display."""

from __future__ import annotations

import math
import re
from typing import Any

_SYMBOLS = {
    r"\lambda": "λ",
    r"\sigma": "σ",
    r"\delta": "δ",
    r"\tau": "τ",
    r"\gamma": "γ",
    r"\rho": "ρ",
    r"\eta": "η",
    r"\epsilon": "ε",
    r"\|": "‖",
    "^2": "²",
}
_SUBSCRIPTS = str.maketrans("0123456789ps", "₀₁₂₃₄₅₆₇₈₉ₚₛ")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def without_markup(label: str) -> str:
    """Return a label with its formulas in Unicode characters."""
    return re.sub(r"\$(.*?)\$", lambda formula: _in_characters(formula[1]), label)


def _in_characters(latex: str) -> str:
    for command, sign in _SYMBOLS.items():
        latex = latex.replace(command, sign)
    latex = re.sub(r"\\mathrm|[\\{}]", "", latex)
    return re.sub(r"_([\dps])\b", lambda index: index[1].translate(_SUBSCRIPTS), latex)


def duration(seconds: float) -> str:
    """Format a duration approximately."""
    if seconds < 60:
        return f"about {max(1.0, seconds):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5_400 else f"about {round(seconds / 3_600, 1):g} h"


def counted(n: int, noun: str, many: str = "") -> str:
    """Format a count, as in "1 run" or "2,000 runs"; `many` is an irregular plural."""
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


def superscript(number: int) -> str:
    """Return a whole number in superscript digits."""
    return str(number).translate(_SUPERSCRIPTS)


def typeset(number: float, form: str = ".3g") -> str:
    """Format a number, with a minus sign and a power of ten: "−2·10⁻⁵" for -2e-5."""
    digits, _, exponent = f"{number:{form}}".partition("e")
    power = f"·10{superscript(int(exponent))}" if exponent and number else ""
    return f"{digits.replace('-', '−')}{power}".removeprefix("1·")


def with_spread(mean: float, spread: float) -> str:
    """Return mean ± spread, the spread to two digits and the mean to the same place: "680 ± 210"."""
    if not spread > 0.0:
        return typeset(mean)
    digits = 1 - math.floor(math.log10(spread))
    if not -6 < digits < 6:
        return f"{typeset(mean)} ± {typeset(spread, '.2g')}"
    return " ± ".join(typeset(round(x, digits), f",.{max(digits, 0)}f") for x in (mean, spread))


def in_powers(text: str) -> str:
    """Format the numbers with exponents in a text like `typeset`."""
    return re.sub(r"-?\b\d[\d.]*e[-+]?\d+\b", lambda number: typeset(float(number[0]), "g"), text)


def cell(value: Any) -> str:
    """Format a value for a table."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return typeset(value, ".5g")
    return f"{value:,}" if isinstance(value, int) else str(getattr(value, "label", value))


def ordinal(n: int) -> str:
    """Return an ordinal number, such as 1st, 2nd, 3rd and 4th."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"
