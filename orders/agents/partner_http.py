"""Blocking JSON requests to the partners' servers, for the audit and the demo; agents use `HttpAgent`."""

import json
from typing import Any
from urllib.request import Request, urlopen


def request_json(
    url: str, content: object = None, *, timeout: float, method: str | None = None
) -> Any:
    """GET a JSON value, or send `content` as JSON (by POST, or `method`) and return the JSON answer.

    `timeout` is in seconds. Raises an `OSError` such as `URLError` without a good answer, and
    `ValueError` if it is not JSON.
    """
    request = Request(  # noqa: S310 - the URLs are the installation's own settings
        url,
        method=method,
        data=None if content is None else json.dumps(content).encode(),
        headers={"Accept": "application/json", "Content-Type": "application/json"},
    )
    with urlopen(request, timeout=timeout) as answer:  # noqa: S310
        return json.load(answer)
