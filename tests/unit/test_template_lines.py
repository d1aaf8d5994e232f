"""Positions of rendered manifests in their templates."""

from __future__ import annotations

import pytest

from compiler.plan.template_lines import in_template
from compiler.source import Span
from compiler.yamlio import load_all

TEMPLATE = """\
{% for rail in values.rails %}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: rail-{{ rail }}
data:
  a: "1"
{% if rail %}
  b: {{ rail }}
{% endif %}
---
apiVersion: v1
kind: Secret
metadata:
  name: rail-{{ rail }}
{% endfor %}
"""


def rendered() -> str:
    text = ""
    for rail in range(3):
        text += f'---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rail-{rail}\ndata:\n  a: "1"\n'
        if rail:
            text += f'  b: "{rail}"\n'
        text += f"---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: rail-{rail}\n"
    return text


@pytest.mark.parametrize(
    ("number", "path", "line", "column"),
    [
        (0, (), 3, 1),
        (0, ("data", "a"), 8, 6),
        (1, ("kind",), 14, 7),
        (2, ("kind",), 4, 7),  # the loop's second turn
        (4, ("data", "a"), 8, 6),  # its third
        (5, ("kind",), 14, 7),
        (5, (), 13, 1),
        (4, ("metadata", "name"), 5, 1),  # made by an expression: the line above
        (4, ("data", "b"), 8, 1),
    ],
)
def test_a_position_is_that_of_the_template(number: int, path: tuple[str, ...], line: int, column: int) -> None:
    document = load_all(rendered(), "manifests/x.yaml.j2")[number]
    assert in_template(document, rendered(), TEMPLATE).span(path) == Span("manifests/x.yaml.j2", line, column)


def test_a_text_that_an_expression_made_as_a_whole() -> None:
    template = "{{ values.all | to_yaml }}\n"
    text = "apiVersion: v1\nkind: Pod\n"
    (document,) = load_all(text, "x.yaml.j2")
    assert in_template(document, text, template).span(("kind",)) == Span("x.yaml.j2", 1, 1)


def test_data_and_name_stay() -> None:
    (document,) = load_all("a: [1, {b: c}]\n", "x.yaml.j2")
    moved = in_template(document, "a: [1, {b: c}]\n", "a: [1, {b: c}]\n")
    assert (moved.data, moved.file) == (document.data, document.file)
    assert moved.span(("a", 1, "b")) == document.span(("a", 1, "b"))
