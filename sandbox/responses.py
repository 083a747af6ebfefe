"""HTTP responses: the regular ones, and those that a scripted fault delays, alters or cuts."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.faults import Fault
from sandbox.partner import Json
from sandbox.refusals import PAYMENT, Refusal, declined

Params = dict[str, Any]

encode = json.JSONEncoder(separators=(",", ":")).encode
JSON_HEADERS = {"Content-Type": "application/json"}
REPLAYED_HEADERS = {**JSON_HEADERS, "Idempotent-Replayed": "true"}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends a TCP reset
HTML_ERROR = (
    "<!doctype html><html><head><title>Error</title></head>"
    "<body><h1>Something went wrong</h1><p>The gateway could not handle the request.</p>"
    "</body></html>"
)


def json_response(body: Json, status: int = 200, *, replayed: bool = False) -> Response:
    """Return a JSON response."""
    headers = REPLAYED_HEADERS if replayed else JSON_HEADERS
    return Response(body=encode(body).encode(), status=status, headers=headers)


def error_response(refusal: Refusal, partner: str | None = None) -> Response:
    """Return a refusal as a JSON response, in the partner's error format."""
    return json_response({"error": refusal.error(partner)}, refusal.status)


def cut_connection(request: BaseRequest) -> Response:
    """Cut the connection with a reset; the returned response is not sent."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        transport.abort()
    return Response()


async def hang(request: BaseRequest, seconds: float) -> Response:
    """Send nothing for some seconds, then cut the connection."""
    await asyncio.sleep(seconds)
    return cut_connection(request)


def scripted_refusal(fault: Fault, partner: str) -> Refusal:
    """Return the definitive refusal of a `reject` fault."""
    message = fault.params["message"]
    if partner == PAYMENT:
        refusal = declined("generic_decline", message or "Your card was declined.")
    else:
        message = (
            message
            or f"The {partner} partner refuses this request permanently (by the fault script)."
        )
        refusal = Refusal(422, "rejected", message, stored=True)
    refusal.status = fault.params["status"] or refusal.status
    refusal.code = fault.params["code"] or refusal.code
    return refusal


async def apply_before_effect(
    request: BaseRequest, fault: Fault, partner: str
) -> StreamResponse | None:
    """Apply a fault that prevents the effect; return None for other kinds."""
    params = fault.params
    if fault.kind in ("reset", "down"):
        return cut_connection(request)
    if fault.kind == "timeout":
        return await hang(request, params["seconds"])
    if fault.kind == "html":
        return Response(text=HTML_ERROR, content_type="text/html")
    if fault.kind in FAILURES:
        return FAILURES[fault.kind](params, partner)
    return None


async def apply_after_effect(
    request: BaseRequest, fault: Fault, partner: str, answer: Response
) -> StreamResponse:
    """Apply a fault to the answer, after the effect; other kinds leave it as it is."""
    if fault.kind == "reset_after_effect":
        return cut_connection(request)
    if fault.kind == "reset_within_answer":
        return await _send_half(request, answer)
    if fault.kind == "timeout_after_effect":
        return await hang(request, fault.params["seconds"])
    if fault.kind == "slow":
        await asyncio.sleep(fault.params["seconds"])
    if fault.kind == "drip":
        return await _drip(request, answer, fault.params["seconds"])
    if fault.kind in ALTERATIONS:
        return ALTERATIONS[fault.kind](fault.params, partner, answer)
    return answer


async def _send_half(request: BaseRequest, answer: Response) -> Response:
    """Send the headers and half of the body, then cut the connection."""
    body = _body_of(answer)
    headers = {"Content-Length": str(len(body)), **JSON_HEADERS}
    response = StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    return cut_connection(request)


async def _drip(request: BaseRequest, answer: Response, seconds: float) -> StreamResponse:
    """Send the headers at once and the body byte by byte, with a pause before each."""
    body = _body_of(answer)
    headers = {"Content-Length": str(len(body)), **JSON_HEADERS}
    response = StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        for byte in body:
            await asyncio.sleep(seconds)
            await response.write(bytes([byte]))
    except ConnectionError:
        return response  # the client has disconnected
    return response


def _status(params: Params, partner: str) -> Response:
    status = params["status"]
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Failure"
    message = f"{phrase} (by the fault script). Repeat the request with the same key."
    code = "internal_error" if status >= 500 else "failure"
    response = _error(status, code, message, partner)
    if params.get("retry_after") is not None:
        response.headers["Retry-After"] = str(params["retry_after"])
    return response


def _too_many(params: Params, partner: str) -> Response:
    seconds = params["retry_after"]
    message = f"Too many requests (by the fault script). Wait {seconds} s, then repeat."
    response = _error(429, "rate_limit", message, partner)
    response.headers["Retry-After"] = str(seconds)
    return response


def _ok_with_error(params: Params, partner: str) -> Response:
    message = params["message"] or "The request was not processed, despite the status 200."
    return _error(200, params["code"] or "internal_error", message, partner)


def _error(status: int, code: str, message: str, partner: str) -> Response:
    error = {"code": code, "message": message}
    if partner == PAYMENT:
        error["type"] = "invalid_request_error" if status == 429 else "api_error"
    return json_response({"error": error}, status)


def _wrong_json(_: Params, __: str, answer: Response) -> Response:
    body = _body_of(answer)
    return Response(body=body[: len(body) // 2], status=answer.status, headers=JSON_HEADERS)


def _wrong_schema(_: Params, __: str, answer: Response) -> Response:
    return json_response({"data": [{"type": "result", "ok": True}], "page": 1}, answer.status)


def _body_of(answer: Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b""


FAILURES: dict[str, Callable[[Params, str], Response]] = {
    "status": _status,
    "too_many_requests": _too_many,
    "ok_with_error": _ok_with_error,
}
ALTERATIONS: dict[str, Callable[[Params, str, Response], Response]] = {
    "status_after_effect": lambda params, partner, _: _status(params, partner),
    "wrong_json": _wrong_json,
    "wrong_schema": _wrong_schema,
}
