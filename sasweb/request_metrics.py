"""Rate, errors and duration of web requests, by a class of addresses."""

import os
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # gunicorn.conf.py makes this folder
CLASSES = {"ops", "admin", "api", "hooks", "static", "login", "metrics", "livez", "readyz"}
SECONDS = Histogram(
    "sas_web_request_seconds",
    "From a request's arrival in the application to its answer",
    ["route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=None,
)


def count_requests(
    answer: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware, the outermost: what others refuse or redirect is counted too."""

    for customers in ("shop", "api"):  # an error that is the first of its series would have no rate
        SECONDS.labels(customers, "5xx")

    def counted(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = answer(request)
        took = time.perf_counter() - began
        status = f"{response.status_code // 100}xx"
        SECONDS.labels(route(request.path_info), status).observe(took)
        return response

    return counted


def route(path: str) -> str:
    """Return the class of an address: its first part, and "shop" for all that customers see."""
    first = path[1:].partition("/")[0]
    return first if first in CLASSES else "shop"


def collectors() -> list[Collector]:
    """Return what has the counts: of all web processes on this machine, or of this one alone."""
    return [MultiProcessCollector(None)] if os.environ.get(SHARED) else [SECONDS]  # type: ignore[no-untyped-call]
