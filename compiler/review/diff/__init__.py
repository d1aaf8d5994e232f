"""What a change of the sources changes in the bundles: two compiled sides compared, and the comparison told.

`revisions` reads the two sides, `snapshot` and `compare` turn two bundles into a `BundleDiff`, `report` gathers all
bundles, the `render_*` modules tell it. Everything but `revisions` is pure.
"""

from __future__ import annotations
