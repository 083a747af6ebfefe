"""What a payment waits for, in answers of the API."""

from typing import Annotated

from ninja import Schema
from pydantic import Field

from .schema_fields import Amount


class Transfer(Schema):
    """Where a bank transfer goes."""

    holder: str
    iban: Annotated[str, Field(examples=["DE00 1001 0010 3525 0934 24"])]
    bic: str
    reference: Annotated[str, Field(description="The customer states it with the transfer.")]
    amount: Amount


class PaymentDue(Schema):
    """What the customer has to do: confirm at the bank, on its page or in its app, or transfer."""

    page: Annotated[str, Field(description="The bank's page; empty if there is none.")]
    transfer: Transfer | None
