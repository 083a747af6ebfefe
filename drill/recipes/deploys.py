"""Deploys: the workflow changes while orders of the old one are in flight."""

from collections.abc import Iterator
from contextlib import ExitStack

from drill.recipes import Running, recipe
from drill.stack import SUPERVISORS, WORKERS, end

SETTINGS = "drill.deploys.settings"


@recipe
def deploy(run: Running, *, change: str, together: bool = False, more: int = 60) -> Iterator[None]:
    """New code replaces the old, or works beside it; orders placed from then on are the new ones."""
    new = {"DJANGO_SETTINGS_MODULE": SETTINGS, "DRILL_DEPLOY": change}
    with ExitStack() as later:
        for name in (*WORKERS, *SUPERVISORS):
            if together:
                later.callback(end, run.stack.beside(name, **new))
            else:
                later.enter_context(run.stack.replaced(name, **new))
        run.place(more)
        yield
        run.quiet()
