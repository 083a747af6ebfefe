"""What a token of an application may be good for in the shop."""

from orchestration.api import READ_STATUS, register_scope

WRITE_ORDERS, READ_ORDERS = "orders:write", "orders:read"
__all__ = ["READ_ORDERS", "READ_STATUS", "WRITE_ORDERS"]

register_scope(WRITE_ORDERS, "Place orders, and cancel its own")
register_scope(READ_ORDERS, "Read its own orders")
