"""Fields of the admin that show and take amounts and percentages as people write them: 12.50.

The rows have whole numbers: minor units of a currency, and hundredths of a percent.
"""

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from orchestration.api import currency_digits

from .currency import shop_currency
from .money import largest_price

if TYPE_CHECKING:  # generic for the type checker only
    RowForm = forms.ModelForm[Any]
else:
    RowForm = forms.ModelForm

PERCENT = "%"


class ScaledField(forms.DecimalField):
    """A decimal number that is stored as a whole number of its last digit, as `least` and `most` are."""

    def __init__(self, *, digits: int, least: int, most: int, **options: Any) -> None:
        self.digits = digits
        super().__init__(
            min_value=Decimal(least).scaleb(-digits),
            max_value=Decimal(most).scaleb(-digits),
            decimal_places=digits,
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        """Return a stored number as people write it, and what they typed as it is."""
        return Decimal(value).scaleb(-self.digits) if isinstance(value, int) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether what was typed is another number than the stored one."""
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value: Any) -> Any:
        """Return the number to store; one that comes from the row is stored already."""
        if isinstance(value, int):
            return value
        number = super().clean(value)
        return None if number is None else int(number.scaleb(self.digits))


class AmountsForm(RowForm):
    """A form of a row with amounts of money in the shop's currency, percentages and moments."""

    amounts: ClassVar[dict[str, int]] = {}  # the fields with amounts, and the least of each
    percentages: ClassVar[dict[str, int]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        currency = shop_currency()
        most, digits = largest_price(), currency_digits(currency)
        for name, least in self.amounts.items():
            self._scale(name, currency, digits=digits, least=least, most=most)
        for name, least in self.percentages.items():
            self._scale(name, PERCENT, digits=2, least=least, most=100_00)
        for field in self.fields.values():
            if isinstance(field.widget, forms.SplitDateTimeWidget):
                self._name_parts(field)

    def _name_parts(self, field: forms.Field) -> None:
        """Name the inputs of a moment for screen readers: its label is for none of them."""
        for part, widget in zip(("date", "time"), field.widget.widgets, strict=True):
            widget.attrs["aria-label"] = f"{field.label}, {part}"

    def _scale(self, name: str, unit: str, **bounds: int) -> None:
        """Exchange a field for one that is read in a unit, which its label names."""
        if field := self.fields.get(name):
            self.fields[name] = ScaledField(
                label=f"{field.label} ({unit})",
                help_text=field.help_text,
                required=field.required,
                **bounds,
            )


class InCurrency(AmountsForm):
    """A row whose amounts are in the shop's currency once it is saved."""

    def clean(self) -> dict[str, Any] | None:
        """Take the amounts as in the currency that the fields name."""
        self.instance.currency = shop_currency()
        return super().clean()
