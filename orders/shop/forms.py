"""Forms of the shop."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from orders.cards import Card
from orders.countries import COUNTRIES
from orders.lifecycle.message import MAX_LENGTH, Address, as_typed
from orders.lifecycle.plain_text import TRIMMED

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Words

shown = RegexValidator(
    TRIMMED,
    _("Please leave out invisible characters, and those that turn the direction of writing."),
)
ADDRESS = ("name", "street", "postcode", "city", "country")


def _text(name: str, label: "Words", autocomplete: str, missing: "Words") -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=MAX_LENGTH[name],
        validators=[shown],
        widget=forms.TextInput(attrs={"autocomplete": autocomplete}),
        error_messages={"required": missing},
    )


class CustomerForm(forms.Form):
    """A form without label suffixes and browser validation."""

    use_required_attribute = False  # messages in the page's language, and all of them at once

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)


class AddressForm(CustomerForm):
    """A delivery address."""

    name = _text("name", _("Your name"), "name", _("Please enter your name."))
    street = _text(
        "street", _("Street and number"), "street-address", _("Please enter the street.")
    )
    postcode = _text("postcode", _("Postcode"), "postal-code", _("Please enter the postcode."))
    city = _text("city", _("Town"), "address-level2", _("Please enter the town."))
    country = forms.ChoiceField(
        label=_("Country"),
        choices=COUNTRIES.items,  # callable, because a list would be deep-copied for each form
        initial="DE",
        widget=forms.Select(attrs={"autocomplete": "country"}),
        error_messages={
            "required": _("Please choose the country."),
            "invalid_choice": _("We do not deliver there."),
        },
    )

    def address(self) -> Address:
        """Return the address of a valid form."""
        return Address(**{name: self.cleaned_data[name] for name in ADDRESS})


def _card_field(initial: Card | None = None) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("Card"),
        choices=Card.choices,
        initial=initial,
        widget=forms.RadioSelect,
        error_messages={
            "required": _("Please choose a card."),
            "invalid_choice": _("Please choose one of these cards."),
        },
    )


class CheckoutForm(AddressForm):
    """Address, e-mail and card of an order."""

    field_order = ["name", "email"]  # then the others
    email = forms.EmailField(
        label=_("E-mail"),
        max_length=MAX_LENGTH["email"],
        validators=[shown],
        help_text=_("For the confirmation, and to look your order up."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={
            "required": _("Please enter your e-mail address."),
            "invalid": _("This is not an e-mail address: it needs a form like name@example.org."),
        },
    )
    payment_method = _card_field(initial=Card.VISA)


class OtherCardForm(CustomerForm):
    """Another card after the payment's `attempt` was declined."""

    attempt = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
    payment_method = _card_field()

    def __init__(self, *args: Any, attempt: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, initial={"attempt": attempt}, auto_id="id_other_%s", **kwargs)


class FindForm(CustomerForm):
    """Number and e-mail address of an order."""

    number = forms.CharField(
        label=_("Order number"),
        max_length=30,
        help_text=_("As in the confirmation: 7KQ4M-9XD2P"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": _("Please enter the order number.")},
    )
    email = forms.EmailField(
        label=_("E-mail"),
        max_length=MAX_LENGTH["email"],
        help_text=_("The one you gave with the order."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={"required": _("Please enter the e-mail address.")},
    )

    def clean_number(self) -> str:
        """Return the number in its canonical form, with misread letters corrected."""
        return as_typed(self.cleaned_data["number"])
