"""What customers fill in."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from .cards import Card
from .countries import COUNTRIES
from .message import LONGEST, Address

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Words

ADDRESS = ("name", "street", "postcode", "city", "country")


def _text(name: str, label: "Words", autocomplete: str, missing: "Words") -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=LONGEST[name],
        widget=forms.TextInput(attrs={"autocomplete": autocomplete}),
        error_messages={"required": missing},
    )


class CustomerForm(forms.Form):
    """A form whose fields say themselves what is wrong with them, to eyes and screen readers."""

    use_required_attribute = False  # our own messages, and all of them at once

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)


class AddressForm(CustomerForm):
    """Where orders go."""

    name = _text("name", _("Your name"), "name", _("Please tell us your name."))
    street = _text(
        "street", _("Street and number"), "street-address", _("Please tell us the street.")
    )
    postcode = _text("postcode", _("Postcode"), "postal-code", _("Please tell us the postcode."))
    city = _text("city", _("Town"), "address-level2", _("Please tell us the town."))
    country = forms.ChoiceField(
        label=_("Country"),
        choices=COUNTRIES.items,  # a function: a list would be copied, deeply, for each form
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


class CheckoutForm(AddressForm):
    """Where the order goes, and how it is paid."""

    field_order = ["name", "email"]  # then the others
    email = forms.EmailField(
        label=_("E-mail"),
        max_length=LONGEST["email"],
        help_text=_("For the confirmation, and to look your order up."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={
            "required": _("Please tell us your e-mail address."),
            "invalid": _("This is not an e-mail address: it needs a form like name@example.org."),
        },
    )
    payment_method = forms.ChoiceField(
        label=_("Card"),
        choices=Card.choices,
        initial=Card.VISA,
        widget=forms.RadioSelect,
        error_messages={
            "required": _("Please choose a card."),
            "invalid_choice": _("Please choose one of these cards."),
        },
    )


class OtherCardForm(CustomerForm):
    """Another card for an order whose payment was declined; `attempt` is the one that was."""

    attempt = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
    payment_method = forms.ChoiceField(
        label=_("Card"),
        choices=Card.choices,
        widget=forms.RadioSelect,
        error_messages={
            "required": _("Please choose a card."),
            "invalid_choice": _("Please choose one of these cards."),
        },
    )

    def __init__(self, *args: Any, attempt: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, initial={"attempt": attempt}, auto_id="id_other_%s", **kwargs)


class FindForm(CustomerForm):
    """What a customer knows of an order."""

    number = forms.CharField(
        label=_("Order number"),
        max_length=30,
        help_text=_("As in the confirmation: 7KQ4M-9XD2P"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": _("Please enter the order number.")},
    )
    email = forms.EmailField(
        label=_("E-mail"),
        max_length=LONGEST["email"],
        help_text=_("The one you gave with the order."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={"required": _("Please enter the e-mail address.")},
    )

    def clean_number(self) -> str:
        """Return the number as we write it: misread letters put right, with its hyphen."""
        typed = "".join(self.cleaned_data["number"].upper().split()).replace("-", "")
        letters = typed.replace("O", "0").replace("I", "1").replace("L", "1")
        return f"{letters[:5]}-{letters[5:]}"
