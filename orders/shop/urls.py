"""URLs of the shop."""

from django.urls import path

from .views import (
    account,
    address,
    cart,
    checkout,
    forgotten,
    order,
    order_address,
    order_changes,
    order_claims,
    order_removals,
    order_returns,
    products,
    subscribe,
    subscriptions,
)

app_name = "shop"
urlpatterns = [
    path("", products.index, name="index"),
    path("products/<slug:slug>/", products.product, name="product"),
    path("products/<slug:slug>/subscribe/", subscribe.subscribe, name="subscribe"),
    path("products/<slug:slug>/subscribe/sums/", subscribe.sums, name="subscribe_sums"),
    path("cart/", cart.show, name="cart"),
    path("cart/add/", cart.add, name="cart_add"),
    path("cart/change/", cart.change, name="cart_change"),
    path("cart/undo/", cart.undo, name="cart_undo"),
    path("checkout/", checkout.checkout, name="checkout"),
    path("checkout/sums/", checkout.sums, name="checkout_sums"),
    path("address/fields/", address.fields, name="address_fields"),
    path("account/", account.account, name="account"),
    path("account/address/", account.address, name="address"),
    path("account/password/", account.password, name="password"),
    path("account/forgotten/", forgotten.Forgotten.as_view(), name="forgotten"),
    path("account/forgotten/<uidb64>/<token>/", forgotten.Reset.as_view(), name="reset"),
    path("account/sign-in/", account.sign_in, name="sign_in"),
    path("account/sign-up/", account.sign_up, name="sign_up"),
    path("account/check-mail/", account.check_mail, name="check_mail"),
    path("account/confirm/<key>/", account.confirm, name="confirm"),
    path("account/subscriptions/", subscriptions.subscriptions, name="subscriptions"),
    path("account/subscriptions/<uuid:id_>/", subscriptions.subscription, name="subscription"),
    path(
        "account/subscriptions/<uuid:id_>/change/", subscriptions.change, name="subscription_change"
    ),
    path("account/subscriptions/<uuid:id_>/skip/", subscriptions.skip, name="subscription_skip"),
    path("account/subscriptions/<uuid:id_>/pause/", subscriptions.pause, name="subscription_pause"),
    path(
        "account/subscriptions/<uuid:id_>/resume/", subscriptions.resume, name="subscription_resume"
    ),
    path("account/subscriptions/<uuid:id_>/end/", subscriptions.end, name="subscription_end"),
    path("orders/find/", order.find, name="find"),
    path("orders/<uuid:order_id>/", order.order, name="order"),
    path("orders/<uuid:order_id>/status/", order.status, name="order_status"),
    path("orders/<uuid:order_id>/card/", order_changes.card, name="order_card"),
    path("orders/<uuid:order_id>/leave-out/", order_changes.leave_out, name="order_leave_out"),
    path("orders/<uuid:order_id>/wait/", order_changes.wait, name="order_wait"),
    path("orders/<uuid:order_id>/cancel/", order_changes.cancel, name="order_cancel"),
    path("orders/<uuid:order_id>/address/", order_address.change, name="order_address"),
    path("orders/<uuid:order_id>/claim/", order_claims.ask, name="order_claim"),
    path("orders/<uuid:order_id>/remove/", order_removals.remove, name="order_remove"),
    path("orders/<uuid:order_id>/return/", order_returns.ask, name="order_return"),
    path("orders/<uuid:order_id>/exchange/", order_returns.choose, name="order_exchange"),
]
