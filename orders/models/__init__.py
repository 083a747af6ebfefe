"""The shop's tables: products, orders, accounts."""

from .order import Order, OrderLine, Placement
from .product import Product
from .visitor import Profile, Throttle, Visitor
