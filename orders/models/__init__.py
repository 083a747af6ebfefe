"""The shop's tables: products, prices, orders, accounts."""

from .gift_card import GiftCard, GiftUse
from .order import Order, OrderLine, Placement
from .pricing import DatedPrice, DiscountCode, DiscountUse, ShippingPrice, TaxClass, TaxRate
from .product import Product
from .refund import Refund
from .visitor import Profile, Throttle, Visitor
