"""Why a bundle is as it is: the overlays of a recipe, the line behind a value, the template behind an object, the
reasons behind an order.

`recipe`, `value`, `objects` and `order` answer one kind of question each, as frozen data; `text` words the answers.
Everything is pure: what is asked of is a catalog, a recipe or a plan that is there already.
"""

from __future__ import annotations
