"""The form that changes where an order goes."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from orders.countries import choices

from .forms import AddressForm

OTHER_COUNTRY = _(
    "Shipping and tax were agreed for this country. To send it to another one, cancel this order "
    "and place a new one."
)


class ReaddressForm(AddressForm):
    """A delivery address in the country that the order goes to."""

    def __init__(self, *args: Any, country: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["country"]
        field.choices = [choice for choice in choices() if choice[0] == country]  # type: ignore[attr-defined] # of a ChoiceField
        field.help_text = OTHER_COUNTRY
        field.error_messages["invalid_choice"] = OTHER_COUNTRY
