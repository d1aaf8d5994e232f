"""docs/errors.md says what the compiler says."""

from __future__ import annotations

import re

from compiler.codes import CODES
from tests.tools import errordocs


def test_the_page_is_what_the_compiler_says():
    assert errordocs.FILE.read_text(encoding="utf-8") == errordocs.page(), "run `make docs`"


def test_every_code_has_a_group_and_a_heading():
    headings = re.findall(r"^### (BC[0-9]{4})$", errordocs.FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == list(CODES)
