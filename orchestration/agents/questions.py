"""What an agent asks its service about: calls in doubt, what was accepted, and work done by hand."""

from collections.abc import Awaitable, Callable
from typing import Any

from .actions import Call, Result

Question = Callable[[Call], Awaitable[Any]]


class Questions:
    """What agents have whose service can be asked. Write what the service can answer.

    >>> class Bank(HttpAgent):
    ...     name, base_url = "bank", "https://bank.example"
    ...     async def look(self, call):
    ...         return await self.get(call, f"/charges/{call.accepted['id']}", expect={"id": str})
    >>> Bank.can_look(), Bank.can_ask()
    (True, False)
    """

    @classmethod
    def can_ask(cls) -> bool:
        """Return whether the service can report the result of a call by its key."""
        return cls.ask is not Questions.ask

    @classmethod
    def can_look(cls) -> bool:
        """Return whether the service can report what came of a call that it accepted."""
        return cls.look is not Questions.look or cls.can_ask()

    async def ask(self, call: Call) -> Any:
        """Ask the service for the result of an earlier call by its key, without any effect.

        Returns what the action would have, if it was done, or None if the service knows of no effect. After
        None the action may run under a new key, so None must never be a guess. Raises `Rejected` if it was
        refused, `Transient` or `Unknown` if that is unclear, and `Later` while the result is to come.
        Implement it only if the answer stays right after the service has forgotten the key.
        """
        raise NotImplementedError

    async def look(self, call: Call) -> Any:
        """Ask the service what came of a call that it accepted (`Later`), without any effect.

        Returns and raises what `ask` does, which it is by default. Write it for a service that knows its
        work by its own id, in `call.accepted`, and does not know keys.
        """
        return await self.ask(call)

    async def look_up(self, _call: Call, _result: Result) -> bool | None:
        """Return whether the service has a `_result` that was entered by hand; None if it is unclear."""
        return None
