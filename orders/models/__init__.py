"""The shop's tables: products, prices, stock, orders, accounts."""

from .claim import Claim
from .exchange import Exchange
from .gift_card import GiftCard, GiftUse
from .order import Order, OrderLine, Placement
from .parcel import Parcel
from .pricing import DatedPrice, DiscountCode, DiscountUse, ShippingPrice, TaxClass, TaxRate
from .product import Product
from .refund import Refund
from .removal import Removal
from .returned import Return
from .stock import StockCorrection, StockLevel
from .subscription import Subscription, SubscriptionOrder
from .visitor import Profile, Throttle, Visitor
