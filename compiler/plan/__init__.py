"""Stage 3, plan: Recipe -> Plan. Deployer-neutral; every decision about order is made here and nowhere else.

Read `plan.py` first: it names the steps, one module each.
"""

from __future__ import annotations

from compiler.plan.collisions import collide
from compiler.plan.plan import plan

__all__ = ["collide", "plan"]
