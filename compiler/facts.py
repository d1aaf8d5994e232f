"""What predicates may look at, taken from a composed recipe."""

from __future__ import annotations

from compiler.model import ComponentFacts, Facts, Recipe


def facts(recipe: Recipe) -> Facts:
    """The facts of `recipe`: its name, criteria, profile, inputs, components, validation and constraints.

    Absent criteria are absent keys, so that `exists: false` holds for them. `objects` is None: nothing is rendered yet.
    """
    return Facts(
        recipe={"name": recipe.name, **recipe.criteria},
        profile={recipe.profile.name: recipe.profile.value} if recipe.profile else {},
        inputs=recipe.inputs,
        components={c.name: ComponentFacts(c.enabled, c.version, c.values) for c in recipe.components.values()},
        validation=recipe.validation,
        constraints={name: constraint.value for name, constraint in recipe.constraints.items()},
    )
