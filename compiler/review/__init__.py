"""Reading what was compiled: what differs between two states of the sources, why it is as it is, what is amiss."""

from __future__ import annotations
