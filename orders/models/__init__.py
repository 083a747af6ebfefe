"""The shop's tables: products, prices, orders, accounts."""

from .order import Order, OrderLine, Placement
from .pricing import DatedPrice, DiscountCode, DiscountUse, ShippingPrice, TaxClass, TaxRate
from .product import Product
from .refund import Refund
from .subscription import Subscription, SubscriptionOrder
from .visitor import Profile, Throttle, Visitor
