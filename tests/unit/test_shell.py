"""Words of a command line are quoted as `shlex` quotes them, whichever way they are put together."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compiler.emit import shell

words = st.lists(st.text("ab -=:/.'\"$\n\té", max_size=4))


@given(words)
@example([])
@example([""])
@example(["", ""])
@example(["a b"])
@example(["a ", "b"])
@example([" "])
def test_words_are_read_back_by_a_shell(given: list[str]) -> None:
    assert shell.words(given) == shlex.join(given)
    assert shlex.split(shell.words(given)) == given


@pytest.mark.parametrize(("part", "word"), [(3, "3"), (shell.Script("a b"), "'a b'")])
def test_whatever_is_no_text_becomes_some(part: object, word: str) -> None:
    assert shell.words(["x", part]) == f"x {word}"
