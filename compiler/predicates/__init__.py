"""The `when:` and `that:` language: parsed once at load, evaluated over the facts of a recipe.

A predicate is a YAML mapping with one subject and, for most subjects, one operator:

* `{all: [P]}`, `{any: [P]}`, `{not: P}`
* `{recipe: service, OP}`, `{profile: gpuStack, OP}`, `{input: x, OP}`
* `{component: x, enabled: true}`, `{component: x, version: ">= 0.5.1"}`
* `{validation: performance.some-constraint, OP}`, `{constraint: K8s.server.version, OP}`
* `{value: "<component>:driver.rdma", OP}`; inside component.yaml `{value: .driver.rdma, OP}`
* `{objects: {group, kind, ...}, every|some|none: {path, OP}}`, `{objects: {...}, count: {atLeast, atMost, equals}}`

Types are strict: true is not 1 is not "1" (numbers compare as numbers, as JSON has only one kind). A missing value or a
null meets no operator but `exists: false`, and `every` over nothing is false: nothing is true for lack of evidence.
"""

from __future__ import annotations

from compiler.predicates.describe import describe
from compiler.predicates.evaluator import evaluate, strictly_equal
from compiler.predicates.grammar import OPERATORS, SUBJECTS
from compiler.predicates.parser import parse

__all__ = ["OPERATORS", "SUBJECTS", "describe", "evaluate", "parse", "strictly_equal"]
