"""What the admin shows of what customers removed from their orders."""

from django.contrib import admin

from orchestration.api import format_money

from .admin_read_only import ReadOnly
from .models import Removal


class RemovalInline(ReadOnly, admin.StackedInline):  # type: ignore[type-arg] # no generic at run time
    """Units that are no longer in an order."""

    model = Removal
    extra = 0
    fields = ["goods", "less", "created_at"]
    readonly_fields = ["goods", "less"]

    @admin.display(description="removed")
    def goods(self, row: Removal) -> str:
        """Show the units."""
        return ", ".join(f"{line['quantity']} of {line['name']}" for line in row.lines)

    @admin.display(description="costs less by")
    def less(self, row: Removal) -> str:
        """Show the amount with its currency."""
        return format_money(row.amount, row.order.currency)
