"""Forms of the shop."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator as NoNull
from django.core.validators import RegexValidator
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

from orders import addresses
from orders.cards import CARDS, NO_CARD, Card
from orders.countries import COUNTRIES, FIRST, choices
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import Address
from orders.lifecycle.plain_text import TRIMMED
from orders.normal import CustomerEmail, composed

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Words

shown = RegexValidator(
    TRIMMED,
    _("Please leave out invisible characters, and those that turn the direction of writing."),
    code="hidden",
)
NO_EMAIL = _("This is not an e-mail address: it needs a form like name@example.org.")
NEWER = {"region", "discount_code", "gift_card"}  # fields that a page of the former release lacks
ADDRESS = ("name", "street", "postcode", "city", "region", "country")
STOCK = forms.Field.default_error_messages["required"]
ALTERED = _("This page was altered or is incomplete. Please reload it.")
ERRORS = {  # where a field has no sentence of its own, by Django's codes
    "required": _("Please fill in this field."),
    "max_length": _("Please enter at most %(limit_value)d characters."),
    "null_characters_not_allowed": shown.message,
}


class Text(forms.CharField):
    """A text; its letters are composed, so that the same words are the same text."""

    def to_python(self, value: Any) -> Any:
        """Return the composed text."""
        return composed(super().to_python(value))


class Email(forms.EmailField):
    """An e-mail address of a customer, composed; shop and API take the same ones."""

    default_validators = [CustomerEmail()]

    def to_python(self, value: Any) -> Any:
        """Return the composed address."""
        return composed(super().to_python(value))


def _text(
    name: str, label: "Words", autocomplete: str, missing: "Words", widget: type[forms.Widget]
) -> Text:
    return Text(
        label=label,
        max_length=MAX_LENGTH[name],
        validators=[shown],
        widget=widget(attrs={"autocomplete": autocomplete}),
        error_messages={"required": missing},
    )


class CustomerForm(forms.Form):
    """A form without label suffixes and browser validation, and with the shop's own sentences."""

    use_required_attribute = False  # messages in the page's language, and all of them at once

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            own = {
                name: words for name, words in field.error_messages.items() if words is not STOCK
            }
            field.error_messages = {**ERRORS, **own}
            if shown in field.validators:  # it refuses null characters, too
                field.validators = [
                    check for check in field.validators if type(check) is not NoNull
                ]


class AddressForm(CustomerForm):
    """A delivery address, with the fields of its country."""

    name = _text("name", _("Your name"), "name", _("Please enter your name."), forms.TextInput)
    country = forms.ChoiceField(
        label=_("Country"),
        choices=choices,
        initial=FIRST,
        widget=forms.Select(
            attrs={
                "autocomplete": "country",
                "hx-post": reverse_lazy("shop:address_fields"),
                "hx-target": "#address",
                "hx-swap": "outerHTML",
            }
        ),
        error_messages={
            "required": _("Please choose the country."),
            "invalid_choice": _("We do not deliver there."),
        },
    )
    street = _text(
        "street",
        _("Street and number"),
        "street-address",
        _("Please enter the street."),
        forms.TextInput,
    )
    postcode = _text(
        "postcode",
        _("Postcode"),
        "postal-code",
        _("Please enter the postcode."),
        forms.TextInput,
    )
    city = _text("city", _("Town"), "address-level2", _("Please enter the town."), forms.TextInput)
    region = _text(
        "region",
        _("Region"),
        "address-level1",
        _("Please choose the county or province."),
        forms.Select,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rules = addresses.country(self.chosen_country)
        for name in ("street", "postcode", "city"):  # typed in while the fields are exchanged
            self.fields[name].widget.attrs["hx-preserve"] = True
        region, postcode = self.fields["region"], self.fields["postcode"]
        postcode.label, region.label = str(self.rules.postcode), str(self.rules.region)
        postcode.required = "postcode" in self.rules.required
        region.required = False  # may be derived from the postcode: see `clean`
        region.widget.choices = [("", ""), *self.rules.regions.items()]

    @property
    def chosen_country(self) -> str:
        """Return the chosen country, or the one that is offered first."""
        first = self.initial.get("country") or self.fields["country"].initial
        chosen = self.data.get("country") if self.is_bound else first
        return chosen if chosen in COUNTRIES else FIRST

    @property
    def rows(self) -> list[list[forms.BoundField]]:
        """The fields of the address, line by line as its country writes it."""
        return [[self[name] for name in row] for row in self.rules.rows]

    def clean_street(self) -> str:
        """Refuse what is too short for a street."""
        street: str = self.cleaned_data["street"]
        if not addresses.is_street(street):
            raise ValidationError(_("This is too short for a street and number."), code="short")
        return street

    def clean_postcode(self) -> str:
        """Return the postcode as its country writes it."""
        typed: str = self.cleaned_data["postcode"]
        if not typed or "country" not in self.cleaned_data:
            return typed
        postcode = self.rules.read_postcode(typed)
        if postcode is None:
            raise ValidationError(
                _("Postcodes of this country look like %(example)s."),
                code="invalid",
                params={"example": self.rules.postcode_example},
            )
        return postcode

    def clean_region(self) -> str:
        """Return the region's code, derived from the postcode if it is empty."""
        typed: str = self.cleaned_data["region"]
        postcode = self.cleaned_data.get("postcode", "")
        if "country" not in self.cleaned_data:
            return typed
        region = self.rules.read_region(typed, postcode)
        # the region may be derived from the corrected postcode
        missing = "region" in self.rules.required and not region and postcode
        if region is None or missing:
            raise ValidationError(self.fields["region"].error_messages["required"], code="required")
        return region

    def address(self) -> Address:
        """Return the address of a valid form."""
        return Address(**{name: self.cleaned_data[name] for name in ADDRESS})


def _card_field(
    choices: "Sequence[tuple[str, Words]]", initial: Card | None = None
) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("Payment"),
        choices=choices,
        initial=initial,
        widget=forms.RadioSelect,
        error_messages={
            "required": _("Please choose how to pay."),
            "invalid_choice": _("Please choose one of these."),
        },
    )


def _code_field(label: "Words") -> Text:
    return Text(
        label=label,
        required=False,
        max_length=MAX_LENGTH["code"],
        validators=[shown],
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "hx-post": reverse_lazy("shop:checkout_sums"),
                "hx-swap": "none",
                "hx-disabled-elt": "#place",
            }
        ),
    )


class CheckoutForm(AddressForm):
    """Address, e-mail, card, discount code and gift card of an order."""

    field_order = ["name", "email"]  # then the others
    email = Email(
        label=_("E-mail"),
        max_length=MAX_LENGTH["email"],
        validators=[shown],
        help_text=_("For the confirmation, and to look your order up."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={
            "required": _("Please enter your e-mail address."),
            "invalid": NO_EMAIL,
        },
    )
    payment_method = _card_field(Card.choices, initial=Card.VISA)
    discount_code = _code_field(_("Discount code"))
    gift_card = _code_field(_("Gift card"))

    def __init__(self, *args: Any, free: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.free = free
        if free:  # then no card is asked for
            self.fields["payment_method"].required = False
        # shipping and tax follow the country, as the fields of the address do; the order waits for them
        self.fields["country"].widget.attrs |= {
            "hx-post": reverse_lazy("shop:checkout_sums"),
            "hx-disabled-elt": "#place",
        }

    @property
    def pays_by(self) -> str:
        """The method by which a valid form pays what is left to pay."""
        return NO_CARD if self.free else str(self.cleaned_data["payment_method"])

    @property
    def details(self) -> dict[str, str]:
        """What was filled in; pages of the former release, which are sent now, have fewer fields."""
        filled = self.cleaned_data
        return {name: text for name, text in filled.items() if text or name not in NEWER}


class OtherCardForm(CustomerForm):
    """Another card after the payment's `attempt` was declined."""

    attempt = forms.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), ALTERED),
    )
    payment_method = _card_field(CARDS)

    def __init__(
        self, *args: Any, attempt: int | None = None, card: str | None = None, **kwargs: Any
    ) -> None:
        initial = {"attempt": attempt, "payment_method": card}
        super().__init__(*args, initial=initial, auto_id="id_other_%s", **kwargs)
