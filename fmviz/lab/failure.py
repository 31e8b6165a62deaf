"""Conversion of exceptions to messages for users."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

NO_MEMORY = (
    "There is not enough memory for this run. Choose a smaller rank or data set, or fewer runs at a time."
)
LOST = f"The process of the fit was killed. {NO_MEMORY}"

Result = TypeVar("Result")


def in_words(failure: BaseException) -> tuple[str, str]:
    """Return a message and the traceback, which is empty for a ValueError."""
    if isinstance(failure, ValueError):
        return str(failure), ""
    details = "".join(traceback.format_exception(failure))
    if isinstance(failure, MemoryError):
        return NO_MEMORY, details
    return f"Unexpected {type(failure).__name__}: {failure}", details


def attempt(call: Callable[[], Result]) -> tuple[Result | None, str, str]:
    """Return the result of `call`, or None, and the message and traceback of an exception."""
    try:
        return call(), "", ""
    except Exception as error:
        return None, *in_words(error)
