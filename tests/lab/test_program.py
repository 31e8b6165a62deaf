"""The header of programs that repeat a result."""

from __future__ import annotations

from fmviz.lab.runs.program import with_header


def test_the_header_names_link_data_and_versions():
    code = with_header(
        "print(1)\n", "A run", link="http://x/train?seed=1", data={"d": "ab"}, versions={"v": "1"}
    )
    assert code.startswith("# A run\n# http://x/train?seed=1\n# data d ab\n# made with v 1\n# Requires fmviz")
    assert code.endswith("\n\nprint(1)\n")


def test_a_title_with_line_breaks_stays_a_comment():
    code = with_header("", "a\nprint('run')\r\fb", versions={"v\n": "1\nprint()"})
    assert code.startswith("# a print('run') b\n# made with v 1 print()\n# Requires")
