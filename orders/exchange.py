"""JSON from and to the partners' servers, for what runs beside the shop and may block: not for agents."""

import json
from typing import Any
from urllib.request import Request, urlopen


def exchange(
    url: str, content: object = None, *, patience: float, method: str | None = None
) -> Any:
    """GET a JSON value, or send `content` as JSON (by POST, or `method`) and return what is answered.

    Waits for `patience` seconds at most. Raises `URLError` or another `OSError` if there is no good
    answer, and `ValueError` if it is not JSON.
    """
    request = Request(  # noqa: S310 - the addresses are the installation's own settings
        url,
        method=method,
        data=None if content is None else json.dumps(content).encode(),
        headers={"Accept": "application/json", "Content-Type": "application/json"},
    )
    with urlopen(request, timeout=patience) as answer:  # noqa: S310
        return json.load(answer)
