"""The scopes of the shop's tokens."""

from orchestration.api import READ_STATUS, register_scope

WRITE_ORDERS, READ_ORDERS = "orders:write", "orders:read"
ANY = ""  # of what the shop shows to everyone
__all__ = ["ANY", "READ_ORDERS", "READ_STATUS", "WRITE_ORDERS"]

register_scope(WRITE_ORDERS, "Place and cancel its own orders")
register_scope(READ_ORDERS, "Read its own orders")
