"""Writing YAML: the bytes that reviews see, and what is refused."""

from __future__ import annotations

import textwrap
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from compiler import yamlio
from compiler.errors import InternalError, UserError


def test_the_form_of_a_file() -> None:
    data = {
        "apiVersion": "v1",
        "metadata": {"labels": {}, "name": "x"},
        "items": [{"a": 1, "b": [1, [2, 3]]}, "text", [], True, None, 0.5],
        "script": "#!/bin/sh\necho\n",
        "last": "two\nlines",
    }
    assert yamlio.dump(data) == textwrap.dedent("""\
        apiVersion: v1
        metadata:
          labels: {}
          name: x
        items:
        - a: 1
          b:
          - 1
          - - 2
            - 3
        - text
        - []
        - true
        - null
        - 0.5
        script: |
          #!/bin/sh
          echo
        last: |-
          two
          lines
        """)


@pytest.mark.parametrize("tag", ["72225e2", "1e3", "5319E7", "12e03", "1.0e3", "08", "009", "0o755", "1.20", "5f3a9c1"])
def test_case_01_strings_of_digits_are_quoted(tag: str) -> None:
    assert yamlio.dump({"tag": tag, tag: "x"}) == f"tag: '{tag}'\n'{tag}': x\n"


@pytest.mark.parametrize("letter", ["y", "n", "Y", "N", "yes", "no", "on", "off", "true", "null", "~", ""])
def test_case_02_words_of_other_types_are_quoted(letter: str) -> None:
    assert yamlio.dump({"a": letter, letter: "x"}) == f"a: '{letter}'\n'{letter}': x\n"


@pytest.mark.parametrize(
    "text", ["22:22", "12:30", "0000:06:00.0", "0755", "2024-01-01", "1_000", ".inf", "=", "<<", "-", "._"]
)
def test_case_03_04_06_other_traps_are_quoted(text: str) -> None:
    assert yamlio.dump({"a": text}) == f"a: '{text}'\n"


@pytest.mark.parametrize("text", ["10.0.0.1", "1.2.3", "v1", "1Gi", "100m", "nvidia.com/gpu", "a-b", "x y", "it's"])
def test_ordinary_text_stays_plain(text: str) -> None:
    assert yamlio.dump({"a": text}) == f"a: {text}\n"


def test_case_08_no_aliases() -> None:
    tolerations = [{"operator": "Exists"}]
    text = yamlio.dump({"a": tolerations, "b": tolerations})
    assert text == "a:\n- operator: Exists\nb:\n- operator: Exists\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nb\n", "a: |\n  a\n  b\n"),
        ("a\nb", "a: |-\n  a\n  b\n"),
        ("a\n\n  b\n", "a: |\n  a\n\n    b\n"),
        ("a\n\n", 'a: "a\\n\\n"\n'),
        (" a\nb\n", 'a: " a\\nb\\n"\n'),
        ("\na\n", 'a: "\\na\\n"\n'),
        ("a \nb\n", 'a: "a \\nb\\n"\n'),
        ("a\r\nb\n", 'a: "a\\r\\nb\\n"\n'),
        ("a\u2028b", 'a: "a\\Lb"\n'),
        ("a\x85b\n", 'a: "a\\Nb\\n"\n'),
    ],
)
def test_literal_blocks_where_every_reader_keeps_them(text: str, written: str) -> None:
    assert yamlio.dump({"a": text}) == written
    assert yaml.safe_load(written) == {"a": text}


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1e16, "1.0e+16"),
        (1e-7, "1.0e-07"),
        (0.1, "0.1"),
        (1000.0, "1000.0"),
        (-0.0, "-0.0"),
        (1.5e300, "1.5e+300"),
        (2**53, "9007199254740992"),
    ],
)
def test_numbers_are_numbers_to_every_reader(number: float, written: str) -> None:
    assert yamlio.dump({"a": number}) == f"a: {written}\n"
    read = yaml.safe_load(written)
    assert read == number
    assert type(read) is type(number)


@pytest.mark.parametrize(
    ("data", "code", "where"),
    [
        ({"a": [{"b": 2**53 + 1}]}, "BC1004", "a[0].b"),
        ({"a": {"x.y": float("nan")}}, "BC1004", 'a["x.y"]'),
        ({"a": float("inf")}, "BC1004", "a"),
        ({"a": {1: "x"}}, "BC1003", "a"),
        ({True: "x"}, "BC1003", "key True"),
        ({"a": "\ud800"}, "BC1001", "a"),
        ({"a": {"\ud800": 1}}, "BC1001", "a"),
    ],
)
def test_what_cannot_be_written_is_named(data: Any, code: str, where: str) -> None:
    with pytest.raises(UserError) as caught:
        yamlio.dump(data)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert where in found.message


def test_a_value_of_another_type_is_our_bug() -> None:
    with pytest.raises(InternalError):
        yamlio.dump({"a": {1, 2}})


def test_frozen_mappings_and_tuples() -> None:
    assert yamlio.dump(MappingProxyType({"a": (1, 2)})) == "a:\n- 1\n- 2\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a", "a\n"),
        ("1", "'1'\n"),
        (1, "1\n"),
        (None, "null\n"),
        (True, "true\n"),
        ("a\nb\n", '"a\\nb\\n"\n'),
        ([], "[]\n"),
        ({}, "{}\n"),
    ],
)
def test_case_19_a_scalar_has_no_document_end(value: Any, written: str) -> None:
    assert yamlio.dump(value) == written


def test_case_19_several_documents() -> None:
    text = yamlio.dump_all([{"a": "x\n---\ny\n"}, {"b": 1}])
    assert text == "a: |\n  x\n  ---\n  y\n---\nb: 1\n"
    assert [d.data for d in yamlio.load_all(text, "f.yaml")] == [{"a": "x\n---\ny\n"}, {"b": 1}]


def test_long_lines_are_not_folded() -> None:
    words = "word " * 400 + "end"
    assert yamlio.dump({"a": words}) == f"a: {words}\n"
    assert yamlio.dump({"a": f"# {words}"}) == f"a: '# {words}'\n"


def test_a_long_key_is_read_back() -> None:
    data = {"k" * 300: {"x": 1}}
    assert yaml.safe_load(yamlio.dump(data)) == data
