"""All rules over one catalog."""

from __future__ import annotations

from pathlib import Path

from compiler.errors import Diagnostic
from compiler.model import Catalog
from compiler.records import dataclass
from compiler.review.lint import clusters, constraints, everything, health, unused, values, versions
from compiler.review.lint import waivers as waiving
from compiler.review.lint.findings import Findings
from compiler.source import Span


@dataclass(frozen=True)
class Result:
    """What was found, by place; what bundlec.yaml accepts, each with its reason; how many compilations it took."""

    findings: tuple[Diagnostic, ...]
    waived: tuple[tuple[Diagnostic, str], ...]
    compiled: int

    def count(self, severity: str) -> int:
        """How many findings are of that severity: error, warning or note."""
        return sum(1 for item in self.findings if item.severity == severity)

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return not self.count("error") and not self.count("warning")


def lint(catalog: Catalog, root: Path, today: str) -> Result:
    """Every finding about a catalog whose files lie below `root`; waivers count up to their last day (YYYY-MM-DD).

    Where a recipe does not compile, what depends on it is not judged: its errors come first.
    """
    findings = Findings()
    findings.extend(catalog.warnings)
    compiled = everything.compile_all(catalog, findings)
    findings.extend(unused.unused(catalog, root, compiled))
    findings.extend(versions.floating(catalog, compiled))
    findings.extend(constraints.weakened(catalog, compiled))
    findings.extend(constraints.replaced(catalog, compiled))
    findings.extend(health.unchecked(compiled))
    findings.extend(values.restated(compiled))
    findings.extend(clusters.unplaced(catalog, compiled))
    left, waived = waiving.apply(findings.sorted(), waiving.waivers(catalog.workspace), today)
    left.sort(key=lambda d: (d.span or Span(""), d.code, d.message))
    return Result(tuple(left), tuple((item, waiver.reason) for item, waiver in waived), findings.compilations)
