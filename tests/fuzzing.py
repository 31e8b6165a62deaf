"""Seeded mutations: bytes, values of JSON and texts of links that nobody meant."""

from __future__ import annotations

import random

# What files are known to stumble over.
TOKENS = (
    *(
        b"9" * 400,
        b"nan",
        b"-inf",
        b"1e308",
        b"-1e308",
        b"1e-320",
        b"\x00",
        b'"',
        b"'",
        b",,,,",
        b"\r",
        b"\n\n",
        b"\t",
    ),
    *(
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"=1+1",
        b"<b>",
        b"18446744073709551616",
        b"-1:-1",
        b"0x7f",
        b":",
    ),
)


MARKUP = (
    "![t](http://x.invalid/p.png)",
    'x" … [Sign in again](http://x.invalid)',
    "x\n\n![t][1]\n\n[1]: http://x.invalid/r.png",
    ":red[![t](http://x.invalid/c.png)]",
    "<http://x.invalid>",
    "http://x.invalid/bare and www.x.invalid",
    "`x` ![t](http://x.invalid/after`code`.png)",
    "\\![t](http://x.invalid/escaped.png)",
    "$\\href{http://x.invalid}{x}$",
    "<img src=http://x.invalid/h.png>",
)
TEXTS = (
    *MARKUP,
    *(
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "-1",
        "0",
        "1e308",
        "1e-308",
        "9" * 400,
        "0.5",
        "3:lambda_p:nan",
        "1,2,3",
        ",,,",
    ),
    *(
        "null",
        "true",
        "yes",
        "\x00",
        "🦊",
        "../../etc/passwd",
        "own:../x",
        "<script>x</script>",
        "%00",
    ),
    *(
        "__class__",
        "'; DROP TABLE runs; --",
        "x" * 5_000,
        "1 2\n3",
        "{}",
        "[]",
    ),
)


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Return bytes with one to four parts changed, cut, doubled or put in."""
    for _ in range(dice.randint(1, 4)):
        a, b = sorted(dice.randint(0, len(data)) for _ in range(2))
        b = min(b, a + dice.choice([1, 8, 200]))
        data = dice.choice(
            [
                lambda data=data, a=a, b=b: data[:a] + dice.randbytes(b - a) + data[b:],
                lambda data=data, a=a, b=b: data[:a] + data[b:],
                lambda data=data, a=a, b=b: data[:b] + data[a:b] * dice.choice([1, 50]) + data[b:],
                lambda data=data, a=a, b=b: data[:a] + dice.choice(TOKENS) + data[b:],
                lambda data=data, a=a: data[a:] + data[:a] if dice.random() < 0.2 else data[: a + 1],
            ]
        )()
    return data
