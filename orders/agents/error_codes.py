"""Error codes of the partners that the shop reacts to."""

OUT_OF_STOCK = "out_of_stock"  # the inventory's
CARD_REFUSED = "card_declined"  # Stripe's, where it gives no other reason
CANCELED = "payment_canceled"  # the payment was cancelled at the provider, by hand for example
EXPIRED = "authorization_expired"  # before it was captured, and the card cannot be charged anew
TOO_RISKY = "too_risky"
# A bank declines a card: Stripe's list (docs.stripe.com/declines/codes)
_DECLINE_CODES = """
approve_with_id authentication_not_handled authentication_required call_issuer card_declined
card_not_supported card_velocity_exceeded currency_not_supported do_not_honor do_not_try_again
duplicate_transaction expired_card fraudulent generic_decline incorrect_address incorrect_cvc
incorrect_number incorrect_pin incorrect_zip insufficient_funds invalid_account invalid_amount
invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number invalid_pin
issuer_not_available lost_card merchant_blacklist new_account_information_available
no_action_taken not_permitted offline_pin_required online_or_offline_pin_required
payment_intent_authentication_failure pickup_card
pin_try_exceeded processing_error reenter_transaction restricted_card
revocation_of_all_authorizations revocation_of_authorization security_violation
service_not_allowed stolen_card stop_payment_order testmode_decline transaction_not_allowed
try_again_later withdrawal_count_limit_exceeded
"""
DECLINED = frozenset(_DECLINE_CODES.split()) | {CANCELED, EXPIRED}
