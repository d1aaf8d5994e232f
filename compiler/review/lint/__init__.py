"""What is amiss in the sources although they compile, or does not compile although nobody asked yet.

`everything` compiles each recipe on each deployer, the modules of the rules look at the sources and at what was
compiled, `waivers` takes out what bundlec.yaml accepts, `forms` writes the result for people and programs.
"""

from __future__ import annotations

from compiler.review.lint.run import Result, lint

__all__ = ["Result", "lint"]
