"""Reading YAML: the rules for our own files, positions, all findings at once."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from compiler import yamlio
from compiler.errors import Diagnostic, UserError
from compiler.source import walk


def findings(text: str, **how: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(UserError) as caught:
        yamlio.load_all(text, "f.yaml", **how) if how else yamlio.load(text, "f.yaml")
    return caught.value.diagnostics


def one(text: str) -> tuple[str, str, str | None]:
    (found,) = findings(text)
    return found.code, str(found.span), found.fix


def test_plain_data() -> None:
    text = textwrap.dedent("""\
        # comment
        a: text
        b: [1, -2, 0x1f, 1.5, .5, 1.0e+3]
        c: {d: true, e: False, f: null, g: ~, h: }
        i: |
          two
          lines
        "j": "yes"
        """)
    assert yamlio.load(text, "f.yaml").data == {
        "a": "text",
        "b": [1, -2, 31, 1.5, 0.5, 1000.0],
        "c": {"d": True, "e": False, "f": None, "g": None, "h": None},
        "i": "two\nlines\n",
        "j": "yes",
    }


def test_every_node_has_its_position() -> None:
    document = yamlio.load("a: 1\nb:\n  - x\n  - c: {d: e}\n    f: |\n      text\n", "f.yaml")
    places = {path: (str(document.span(path)), str(document.span(path, key=True))) for path in walk(document.data)}
    assert places == {
        (): ("f.yaml:1:1", "f.yaml:1:1"),
        ("a",): ("f.yaml:1:4", "f.yaml:1:1"),
        ("b",): ("f.yaml:3:3", "f.yaml:2:1"),
        ("b", 0): ("f.yaml:3:5", "f.yaml:3:5"),
        ("b", 1): ("f.yaml:4:5", "f.yaml:4:5"),
        ("b", 1, "c"): ("f.yaml:4:8", "f.yaml:4:5"),
        ("b", 1, "c", "d"): ("f.yaml:4:12", "f.yaml:4:9"),
        ("b", 1, "f"): ("f.yaml:5:8", "f.yaml:5:5"),
    }


def test_byte_order_mark_and_windows_line_ends() -> None:
    document = yamlio.load("\ufeffa: 1\r\nb: |\r\n  x\r\n  y\r\nc: 2\r\n", "f.yaml")
    assert document.data == {"a": 1, "b": "x\ny\n", "c": 2}
    assert str(document.span(("c",))) == "f.yaml:5:4"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\n\n"])
def test_an_empty_file_holds_nothing(text: str) -> None:
    assert yamlio.load(text, "f.yaml").data is None
    assert yamlio.load_all(text, "f.yaml") == ()


@pytest.mark.parametrize(
    "scalar",
    ["1e3", "72225e2", "5319E7", "12e03", "1.0e3", "08", "009", "0o755", "1_000", "0b11", "+0x1f", "1_0.5", "-.5"],
)
def test_case_01_digits_that_readers_disagree_about_want_quotes(scalar: str) -> None:
    assert one(f"image:\n  tag: {scalar}\n") == ("BC1003", "f.yaml:2:8", findings(f"\n  {scalar}")[0].fix)
    assert f'quote it: "{scalar}"' in str(one(f"a: {scalar}")[2])
    assert yamlio.load(f'a: "{scalar}"', "f.yaml").data == {"a": scalar}


@pytest.mark.parametrize("scalar", ["y", "n", "Y", "N", "yes", "No", "ON", "off"])
def test_case_02_booleans_of_yaml_1_1_want_quotes_also_as_keys(scalar: str) -> None:
    assert one(f"a: {scalar}\n") == ("BC1003", "f.yaml:1:4", f'quote it: "{scalar}"')
    assert one(f"{scalar}: a\n") == ("BC1003", "f.yaml:1:1", f'quote it: "{scalar}"')
    assert yamlio.load(f"'{scalar}': '{scalar}'", "f.yaml").data == {scalar: scalar}


@pytest.mark.parametrize("scalar", ["22:22", "12:30", "1:2:3", "-1:30", "08:30", "190:20:30.15", "0000:06:00.0"])
def test_case_03_base_60_wants_quotes(scalar: str) -> None:
    assert one(f"window: {scalar}\n") == ("BC1003", "f.yaml:1:9", f'quote it: "{scalar}"')
    assert yamlio.load_all(f"window: {scalar}\n", "f.yaml", strict=False)[0].data == {"window": scalar}


@pytest.mark.parametrize("scalar", ["0755", "0o755"])
def test_case_04_octal_wants_quotes_or_the_decimal(scalar: str) -> None:
    assert one(f"mode: {scalar}\n")[2] == f'quote it: "{scalar}", or write the decimal 493'
    assert yamlio.load_all(f"mode: {scalar}\n", "f.yaml", strict=False)[0].data == {"mode": 493}


@pytest.mark.parametrize("scalar", ["2024-01-01", "2024-01-01T10:00:00Z", "2024-1-2 3:04:05"])
def test_case_06_dates_want_quotes_and_are_text_elsewhere(scalar: str) -> None:
    assert one(f"release: {scalar}\n")[0] == "BC1003"
    assert yamlio.load_all(f"release: {scalar}\n", "f.yaml", strict=False)[0].data == {"release": scalar}


def test_case_07_a_duplicate_key_names_both_lines() -> None:
    (found,) = findings("overrides: {a: 1}\nx:\n  b: 1\n  b: 2\noverrides: {c: 1}\n")[:1]
    assert (found.code, str(found.span)) == ("BC1002", "f.yaml:4:3")
    assert "lines 3 and 4" in found.message
    assert [str(span) for span, _ in found.notes] == ["f.yaml:3:3"]
    assert [str(d.span) for d in findings("a: 1\nx:\n  b: 1\n  b: 2\na: 2\n")] == ["f.yaml:4:3", "f.yaml:5:1"]


def test_case_07_duplicates_are_errors_in_manifests_too() -> None:
    assert [d.code for d in findings("data: {}\ndata: {}\n", strict=True)] == ["BC1002"]


def test_case_08_anchors_and_aliases_are_refused_in_our_files() -> None:
    codes = [(d.code, str(d.span)) for d in findings("a: &t [1]\nb: *t\nc: {<<: {x: 1}}\nd: !!str 1\n")]
    assert codes == [
        ("BC1005", "f.yaml:1:4"),
        ("BC1005", "f.yaml:2:4"),
        ("BC1005", "f.yaml:3:5"),
        ("BC1005", "f.yaml:4:4"),
    ]


def test_third_party_aliases_become_independent_copies() -> None:
    (document,) = yamlio.load_all(
        "a: &t [{k: 1}]\nb: *t\nc: {<<: [{x: 1}, {x: 2, z: 3}], z: 4}\n", "f.yaml", strict=False
    )
    assert document.data == {"a": [{"k": 1}], "b": [{"k": 1}], "c": {"x": 1, "z": 4}}
    document.data["a"][0]["k"] = 2
    assert document.data["b"] == [{"k": 1}]


def test_a_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert findings("\n".join(lines), strict=False)[0].code == "BC1005"


def test_case_19_documents_are_split_by_the_parser() -> None:
    text = textwrap.dedent("""\
        ---
        # licence
        ---
        kind: ConfigMap
        data:
          s: |
            ---
            not a separator
          t: "---"
        --- # two
        kind: Secret
        ---
        # only a comment
        ...
        """)
    documents = yamlio.load_all(text, "f.yaml")
    assert [d.data["kind"] for d in documents] == ["ConfigMap", "Secret"]
    assert documents[0].data["data"] == {"s": "---\nnot a separator\n", "t": "---"}
    assert str(documents[1].span(("kind",))) == "f.yaml:11:7"


def test_case_24_a_template_is_told_its_name() -> None:
    for text in ("a: {{ .Values.x }}\n", "{{- if x }}\na: b\n{{- end }}\n", "a: {{ x }} y\n"):
        assert all(d.fix == "a template is named *.yaml.j2" for d in findings(text))


def test_one_document_a_file() -> None:
    assert one("a: 1\n---\nb: 2\n") == ("BC1005", "f.yaml:3:1", "split the file at `---`")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: b: c\n", "f.yaml:1:5"),
        ("a:\n\tb: 1\n", "f.yaml:2:1"),
        ("a: 'x\n", "f.yaml:2:1"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2:2"),
        ("ok: 1\nä: \x07\n", "f.yaml:2:4"),
        ("a: @x\n", "f.yaml:1:4"),
        ("a: *x\n", "f.yaml:1:4"),
        ("%YAML 9.9\n---\na: 1\n", "f.yaml:1:1"),
    ],
)
def test_syntax_errors_have_a_place(text: str, place: str) -> None:
    found = findings(text)[0]
    assert (found.code, str(found.span)) == ("BC1005" if text == "a: *x\n" else "BC1001", place)


def test_tabs_are_explained() -> None:
    assert one("a:\n\tb: 1\n")[2] == "indent with spaces, not with tabs"


@pytest.mark.parametrize(
    "scalar", [".inf", "-.Inf", ".NaN", "1.0e+999", "9007199254740993", "-9007199254740993", "0xfffffffffffffff"]
)
def test_numbers_out_of_range(scalar: str) -> None:
    assert one(f"a: {scalar}\n")[0] == "BC1004"
    assert yamlio.load(f"a: '{scalar}'", "f.yaml").data == {"a": scalar}


def test_the_largest_exact_integer_is_fine() -> None:
    assert yamlio.load("a: 9007199254740992", "f.yaml").data == {"a": 2**53}


def test_absurd_digits_are_no_traceback() -> None:
    digits = "9" * 6000
    assert one(f"a: {digits}")[0] == "BC1004"
    assert yamlio.load_all(f"a: {digits}", "f.yaml", strict=False)[0].data == {"a": digits}


@pytest.mark.parametrize("key", ["1", "true", "null", "1.5", "[a]", "{a: b}"])
def test_keys_are_strings(key: str) -> None:
    assert one(f"? {key}\n: x\n")[0] == "BC1003"


def test_third_party_keys_become_strings_as_in_json() -> None:
    (document,) = yamlio.load_all("1: a\ntrue: b\non: c\nnull: d\n1.5: e\n", "f.yaml", strict=False)
    assert document.data == {"1": "a", "true": "c", "null": "d", "1.5": "e"}


def test_deep_nesting_is_refused_before_anything_recurses() -> None:
    assert one("[" * 300)[0] == "BC1005"
    assert one("[" * 5000)[0] == "BC1001"  # libyaml's own limit
    assert one("".join(f"{' ' * n}a:\n" for n in range(300)))[0] == "BC1005"


@pytest.mark.parametrize("scalar", ["*", "@x", "`x`", "&", "%x"])
def test_special_first_characters_are_explained(scalar: str) -> None:
    assert findings(f"a: {scalar}\n")[0].fix == "quote text that begins with a special character"


def test_all_findings_of_a_file_come_at_once() -> None:
    text = "a: yes\na: 2\nb: .inf\nc: &x 1\n1: d\ne: 012\n"
    assert [d.code for d in findings(text)] == ["BC1003", "BC1002", "BC1004", "BC1005", "BC1003", "BC1003"]


def test_findings_before_a_syntax_error_are_kept() -> None:
    assert [d.code for d in findings("a: yes\nb: [1\n")] == ["BC1003", "BC1001"]


def test_text_that_is_not_unicode_is_a_finding() -> None:
    assert one("a: \ud800")[0] == "BC1001"
