"""A shop whose inventory is a real sandbox, and its levels as rows."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from orders.agents.inventory import Inventory
from orders.models import StockLevel
from orders.stock import levels
from tests.support.sandbox import process, send


@contextmanager
def inventory(folder, monkeypatch, **stock):
    """Serve an inventory with this stock by SKU (`sku_0={"main": 3}`); yields its port."""
    with process(folder) as (_, port):
        monkeypatch.setattr(Inventory, "base_url", f"http://127.0.0.1:{port}")
        set_stock(port, **stock)
        yield port


@contextmanager
def answering(content):
    """Serve this JSON at every address; yields the address."""

    class Fixed(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Fixed) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def set_stock(port, **stock):
    send(
        port,
        "PUT",
        "/inventory/stock",
        body={sku.replace("_", "-"): of for sku, of in stock.items()},
    )


def reserve(port, sku, quantity, order="o-1"):
    lines = [{"sku": sku, "quantity": quantity}]
    body = {"order": order, "lines": lines}
    return send(port, "POST", "/inventory/reservations", f"r-{order}-{sku}", body)[1]["id"]


def on_shelves():
    """Return (SKU, warehouse, on hand, reserved) of each level."""
    names = ("product", "warehouse", "on_hand", "reserved")
    return list(StockLevel.objects.order_by(*names[:2]).values_list(*names))


def read(at, of, *, sku="", after="", next=""):  # noqa: A002 - as the result has it
    """Keep levels as if they had been read at a Unix time: {sku: {warehouse: [on hand, reserved]}}."""
    levels.keep({"at": at, "levels": of, "sku": sku, "after": after, "next": next})
