"""Answers on the wire: sound ones, and those that a fault spoils."""

import asyncio
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from sandbox.faults import Fault
from sandbox.journal import encode
from sandbox.partner import Json
from sandbox.refusals import PAYMENT, Refusal, declined

Params = dict[str, Any]

JSON_HEADERS = {"Content-Type": "application/json"}
REPLAYED_HEADERS = {**JSON_HEADERS, "Idempotent-Replayed": "true"}
CUT_NOW = struct.pack("ii", 1, 0)  # linger on, for 0 s: closing sends a reset
HTML_ERROR = (
    "<!doctype html><html><head><title>Error</title></head>"
    "<body><h1>Something went wrong</h1><p>The gateway could not handle the request.</p>"
    "</body></html>"
)


def reply(body: Json, status: int = 200, *, replayed: bool = False) -> Response:
    """Return a JSON response."""
    headers = REPLAYED_HEADERS if replayed else JSON_HEADERS
    return Response(body=encode(body).encode(), status=status, headers=headers)


def refuse(refusal: Refusal, partner: str | None = None) -> Response:
    """Return a refusal as a JSON response, in the partner's shape."""
    return reply({"error": refusal.error(partner)}, refusal.status)


def cut(request: BaseRequest) -> Response:
    """Cut the connection with a reset; the returned response goes nowhere."""
    transport = request.transport
    if isinstance(transport, asyncio.Transport):
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CUT_NOW)
        transport.abort()
    return Response()


async def hang(request: BaseRequest, seconds: float) -> Response:
    """Say nothing for some seconds, then cut the connection."""
    await asyncio.sleep(seconds)
    return cut(request)


def scripted_refusal(fault: Fault, partner: str) -> Refusal:
    """Return the definitive refusal that a `reject` fault stands for."""
    message = fault.params["message"]
    if partner == PAYMENT:
        refusal = declined("generic_decline", message or "Your card was declined.")
    else:
        message = message or f"The {partner} partner refuses this request for good (by script)."
        refusal = Refusal(422, "rejected", message, stored=True)
    refusal.status = fault.params["status"] or refusal.status
    refusal.code = fault.params["code"] or refusal.code
    return refusal


async def before_effect(request: BaseRequest, fault: Fault, partner: str) -> StreamResponse | None:
    """Act out a fault that keeps the request from being processed; None for other kinds."""
    params = fault.params
    if fault.kind in ("reset", "down"):
        return cut(request)
    if fault.kind == "timeout":
        return await hang(request, params["seconds"])
    if fault.kind == "html":
        return Response(text=HTML_ERROR, content_type="text/html")
    if fault.kind in FAILURES:
        return FAILURES[fault.kind](params, partner)
    return None


async def after_effect(
    request: BaseRequest, fault: Fault, partner: str, answer: Response
) -> StreamResponse:
    """Act out a fault that spoils the answer after the effect; other kinds leave it sound."""
    if fault.kind == "reset_after_effect":
        return cut(request)
    if fault.kind == "reset_within_answer":
        return await _begin(request, answer)
    if fault.kind == "timeout_after_effect":
        return await hang(request, fault.params["seconds"])
    if fault.kind == "slow":
        await asyncio.sleep(fault.params["seconds"])
    if fault.kind == "drip":
        return await _drip(request, answer, fault.params["seconds"])
    if fault.kind in SPOILERS:
        return SPOILERS[fault.kind](fault.params, partner, answer)
    return answer


async def _begin(request: BaseRequest, answer: Response) -> Response:
    """Send the headers and half of the body, then cut the connection."""
    body = _bytes(answer)
    headers = {"Content-Length": str(len(body)), **JSON_HEADERS}
    response = StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    return cut(request)


async def _drip(request: BaseRequest, answer: Response, seconds: float) -> StreamResponse:
    """Send the headers at once and the body byte by byte, with a pause before each."""
    body = _bytes(answer)
    headers = {"Content-Length": str(len(body)), **JSON_HEADERS}
    response = StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    try:
        for byte in body:
            await asyncio.sleep(seconds)
            await response.write(bytes([byte]))
    except ConnectionError:
        return response  # the client lost patience
    return response


def _failure(params: Params, partner: str) -> Response:
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
    message = params["message"] or "The request was not processed, for all the 200 says."
    return _error(200, params["code"] or "internal_error", message, partner)


def _error(status: int, code: str, message: str, partner: str) -> Response:
    error = {"code": code, "message": message}
    if partner == PAYMENT:
        error["type"] = "invalid_request_error" if status == 429 else "api_error"
    return reply({"error": error}, status)


def _wrong_json(_: Params, __: str, answer: Response) -> Response:
    body = _bytes(answer)
    return Response(body=body[: len(body) // 2], status=answer.status, headers=JSON_HEADERS)


def _wrong_schema(_: Params, __: str, answer: Response) -> Response:
    return reply({"data": [{"type": "result", "ok": True}], "page": 1}, answer.status)


def _bytes(answer: Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b""


FAILURES: dict[str, Callable[[Params, str], Response]] = {
    "status": _failure,
    "too_many_requests": _too_many,
    "ok_with_error": _ok_with_error,
}
SPOILERS: dict[str, Callable[[Params, str, Response], Response]] = {
    "status_after_effect": lambda params, partner, _: _failure(params, partner),
    "wrong_json": _wrong_json,
    "wrong_schema": _wrong_schema,
}
