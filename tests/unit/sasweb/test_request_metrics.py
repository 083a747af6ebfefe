"""Web requests are counted, by class of address, over all processes."""

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from prometheus_client import Histogram, values
from prometheus_client.multiprocess import MultiProcessCollector

from sasweb import request_metrics
from sasweb.stack.folders import PROJECT


@pytest.fixture
def seconds(monkeypatch):
    monkeypatch.delenv(request_metrics.SHARED, raising=False)
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)

    def fresh():
        metric = Histogram("sas_web_request_seconds", "x", ["route", "status"], registry=None)
        monkeypatch.setattr(request_metrics, "SECONDS", metric)

    return fresh


def counted(collectors):
    return {
        (sample.labels["route"], sample.labels["status"]): sample.value
        for collector in collectors
        for metric in collector.collect()
        for sample in metric.samples
        if sample.name.endswith("_count") and sample.value
    }


def request(path, status):
    answer = request_metrics.count_requests(lambda _request: HttpResponse(status=status))
    assert answer(RequestFactory().get(path)).status_code == status


def test_requests_are_counted_by_class_of_address_and_status(seconds):
    seconds()
    for path, status in [("/", 200), ("/orders/1/", 404), ("/cart/", 302), ("/api/orders", 500)]:
        request(path, status)
    request("/opsx", 200)
    request("/ops/tasks/", 200)
    assert counted(request_metrics.collectors()) == {
        ("shop", "2xx"): 2, ("shop", "4xx"): 1, ("shop", "3xx"): 1, ("api", "5xx"): 1,
        ("ops", "2xx"): 1,
    }  # fmt: skip


def test_processes_of_the_web_server_report_the_counts_of_all(seconds, monkeypatch):
    spec = importlib.util.spec_from_file_location("conf", PROJECT / "gunicorn.conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    server = SimpleNamespace()
    conf.on_starting(server)
    try:
        seconds()
        child = os.fork()
        if child == 0:  # another process of the server
            request("/", 200)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        request("/", 200)
        [collector] = request_metrics.collectors()
        assert isinstance(collector, MultiProcessCollector)
        assert counted([collector]) == {("shop", "2xx"): 2}
    finally:
        conf.on_exit(server)
    assert not Path(os.environ.pop(request_metrics.SHARED)).exists()
