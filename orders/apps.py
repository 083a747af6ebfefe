"""The shop as a Django application."""

from django.apps import AppConfig


class OrdersConfig(AppConfig):
    """Products, carts, orders, and the workflow that processes an order."""

    name = "orders"
    verbose_name = "Shop"
    default_auto_field = "django.db.models.BigAutoField"
