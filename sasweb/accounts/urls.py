"""The pages of an account's security, by allauth's names.

They are there twice: below /account/ for customers, and below /login/ for staff, whose pages another web
process may serve (`sasweb/staff/urls.py`).
"""

from django.urls import path

from . import pages
from .sessions_page import sessions

urlpatterns = [
    path("code/", pages.Code.as_view(), name="mfa_authenticate"),
    path("passkey/", pages.PasskeyLogin.as_view(), name="mfa_login_webauthn"),
    path("sessions/", sessions, name="usersessions_list"),
    path("second-factor/", pages.Own.as_view(), name="mfa_list_webauthn"),
    path("second-factor/", pages.Own.as_view(), name="mfa_index"),
    path("second-factor/app/", pages.App.as_view(), name="mfa_activate_totp"),
    path("second-factor/app/remove/", pages.NoApp.as_view(), name="mfa_deactivate_totp"),
    path("second-factor/passkey/", pages.Passkey.as_view(), name="mfa_add_webauthn"),
    path(
        "second-factor/passkey/<int:pk>/remove/",
        pages.NoPasskey.as_view(),
        name="mfa_remove_webauthn",
    ),
    path("second-factor/codes/", pages.Codes.as_view(), name="mfa_view_recovery_codes"),
    path("second-factor/codes/new/", pages.NewCodes.as_view(), name="mfa_generate_recovery_codes"),
    path("again/", pages.PasswordAgain.as_view(), name="account_reauthenticate"),
    path("again/code/", pages.CodeAgain.as_view(), name="mfa_reauthenticate"),
    path("again/passkey/", pages.PasskeyAgain.as_view(), name="mfa_reauthenticate_webauthn"),
]
