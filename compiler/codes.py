"""Every diagnostic code, with its one-line meaning. Codes are stable: never renumber, never reuse.

BC10xx YAML, BC11xx schema, BC12xx catalog, BC2xxx resolution, BC3xxx plan, BC4xxx emitters and settings, BC5xxx
writing, BC6xxx verification, BC7xxx lint.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CODES: Mapping[str, str] = MappingProxyType(
    {
        "BC1001": "the file is not YAML",
        "BC1002": "a mapping key stands twice",
        "BC1003": "a plain scalar that YAML readers disagree about",
        "BC1004": "a number that JSON or a float cannot hold",
        "BC1005": "a YAML feature that is not accepted here (anchor, alias, tag, merge key, several documents)",
        "BC1006": "the file cannot be read",
        "BC1101": "unknown key",
        "BC1102": "a value of the wrong type or form",
        "BC1103": "a required key is missing",
        "BC1104": "wrong apiVersion or kind",
        "BC1105": "a field that belongs in another file",
        "BC1201": "name and file (or folder) disagree",
        "BC1202": "a name that is not valid, too long or reserved",
        "BC1203": "two things of one name or alias",
        "BC1204": "a reference to something that the catalog does not hold",
        "BC1205": "a cycle of overlays",
        "BC1206": "a path that is missing or leads out of its folder",
        "BC1207": "an unknown check id",
        "BC1208": "a null that would delete a whole inherited branch",
        "BC1209": "a predicate that is not well-formed",
        "BC1210": "no bundlec.yaml",
        "BC2001": "unknown recipe or bundle",
        "BC2002": "criteria that contradict the base's",
        "BC2003": "the recipe is not a maximal match of its own criteria",
        "BC2004": "a mixin that collides",
        "BC2005": "values of different types at one path",
        "BC2006": "an override that can take no effect",
        "BC2007": "a profile that is not well-formed or an unknown value",
        "BC2008": "a path that a profile owns",
        "BC2009": "a null that deletes nothing",
        "BC2010": "a required value is not set",
        "BC2011": "an unknown or invalid input",
        "BC2012": "an override of identity without a reason",
        "BC2013": "a constraint that is not well-formed",
        "BC2014": "a locked path is set",
        "BC2015": "a component that is switched off cannot be switched on here",
        "BC2016": "a component, value, object or release that the recipe does not have",
        "BC3001": "a dependency that the recipe does not declare",
        "BC3002": "a cycle of dependencies",
        "BC3003": "an API that nothing brings",
        "BC3004": "two components that conflict",
        "BC3005": "one CRD with two owners",
        "BC3006": "an assertion does not hold",
        "BC3007": "a manifest template that does not render",
        "BC3008": "a manifest that is not a Kubernetes object",
        "BC3009": "two objects of one identity",
        "BC3010": "a namespace with two owners or conflicting labels",
        "BC3011": "a check that cannot be evaluated",
        "BC3012": "a core component needs an ops component",
        "BC3013": "a null in a manifest",
        "BC3014": "a run-time API whose creator is not asked for it",
        "BC3015": "nothing to wait for",
        "BC4001": "a derived name over its limit or not unique",
        "BC4002": "a setting that a chosen deployer needs",
        "BC4003": "a setting that a chosen deployer cannot honour",
        "BC4004": "a value that a deployer cannot carry",
        "BC5001": "a file in the target that nobody owns",
        "BC5002": "the target cannot be written",
        "BC5003": "flags that change the content need another --out",
        "BC6001": "an edge that the emitted files do not hold",
        "BC6002": "a checksum that does not match",
        "BC6003": "a file that does not belong, or one that is missing",
        "BC6004": "not a bundle",
        "BC6005": "a revision that cannot be read from Git",
    }
)
