"""The one settings file, read from the environment. `docs/run/configure.md` lists the variables."""

from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from . import databases, env, log, mail, safety
from .stack import embedded, folders

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = env.flag("DEBUG", default=False)
# Whether this process signs sessions, links or forms. One that does not has no key to lose; Django raises
# an error wherever something would be signed all the same.
SIGNS = env.flag("SIGNS", default=True)
SECRET_KEY = env.text("SECRET_KEY") or (folders.secret("secret_key") if SIGNS else "")
if SECRET_KEY and not SIGNS:
    raise ImproperlyConfigured("SIGNS is 0 and SECRET_KEY is set; keep one of them.")
if SIGNS and not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. `make run` makes one for the demo by itself; in production set "
        "the variable SECRET_KEY to a long random text and keep it."
    )
# Keys before it, by which what was signed then is still accepted: sessions, links in letters.
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
HTTPS = env.flag("HTTPS", default=False)
# What this web process serves: everything, or the shop alone, whose database role needs no right on
# the engine's tables (docs/run/install.md)
SERVES = env.text("SERVES", "everything")
if SERVES not in {"everything", "shop"}:
    raise ImproperlyConfigured(f"SERVES is {SERVES!r}; it may be 'everything' or 'shop'.")
FOR_STAFF = SERVES == "everything"
PROXIES = env.number("PROXIES", 1 if HTTPS else 0)  # trusted ones in front of this process
# which installation this is, as the admin and the dashboard show it: "production", "staging", …
ENVIRONMENT = env.text("ENVIRONMENT", "demo")
safety.check(
    debug=DEBUG, secret_key=SECRET_KEY if SIGNS else None, https=HTTPS, environment=ENVIRONMENT
)
DEFAULT_EXCEPTION_REPORTER = "sasweb.debug_page.Reporter"

INSTALLED_APPS = [
    "sasweb",
    "orders",
    "orchestration",
    "orchestration.console",
    "orchestration.assurance",
    "sasweb.back_office.BackOfficeConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "sasweb.accounts.apps.SessionsConfig",
    "axes",
    "csp",
    "django_htmx",
    "django_rq",
    "simple_history",
]

MIDDLEWARE = [
    "sasweb.request_metrics.count_requests",
    "orchestration.tracing.web.follow_clicks",
    "sasweb.bodiless.head_without_body",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "sasweb.cookies.storable_cookies",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "orders.visitors.give_cookie",
    "orders.shop.language.ShopLocale",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "sasweb.refusals.explain_method",
    "allauth.account.middleware.AccountMiddleware",
    *(["sasweb.staff.door.door"] if FOR_STAFF else []),
    "simple_history.middleware.HistoryRequestMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "sasweb.urls"
WSGI_APPLICATION = "sasweb.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "sasweb.back_office.environment",
            ],
        },
    }
]

# --- The state store and the doorbell ------------------------------------------------------------
DATABASE_URL = env.text("DATABASE_URL") or embedded.database_url()
REDIS_URL = env.text("REDIS_URL") or embedded.redis_url()
TRANSACTION_POOLER = env.flag("TRANSACTION_POOLER", default=False)
DATABASES = {"default": databases.postgres(DATABASE_URL, pooled=TRANSACTION_POOLER)}
# Pages of the dashboard that only show read from here.
if REPLICA_URL := env.text("REPLICA_URL"):
    DATABASES["replica"] = databases.postgres(
        REPLICA_URL, pooled=TRANSACTION_POOLER, server=databases.STANDBY
    )
    DATABASE_ROUTERS = ["orchestration.database.replica.Router"]

RQ_QUEUES: dict[str, Any] = {}  # of other code; each agent has one by itself
# Schedulers and agents sign what they send each other (docs/run/secure.md): the first key signs, each
# one is accepted.
MESSAGE_KEYS = safety.message_keys(folders.secret("message_key"))
UNSIGNED_MESSAGES = env.flag("UNSIGNED_MESSAGES", default=False)
AGENT_SLOTS = env.numbers("AGENT_SLOTS")  # requests that one worker has at once, by agent
RQ_SHOW_ADMIN_LINK = False  # its pages count RQ's own workers and books: there are none

# --- Retention -----------------------------------------------------------------------------------
# With a folder here, old tasks are not removed by the housekeeper, but by `manage.py archive --due`,
# which writes them to files there.
ARCHIVE_DIR = env.text("ARCHIVE_DIR")
# Other applications' tables that only grow: key, column of the time, days for which their rows are kept.
REMOVE_AFTER_DAYS = {
    "django_session": ("session_key", "expire_date", 0.0),
    "orders_visitor": ("key", "changed_at", 14.0),
    "axes_accessattempt": ("id", "attempt_time", 30.0),
    "axes_accesslog": ("id", "attempt_time", 365.0),
    "usersessions_usersession": ("id", "created_at", 90.0),
}

# --- The partners --------------------------------------------------------------------------------
SANDBOX_URL = f"http://127.0.0.1:{env.number('SANDBOX_PORT', 8900)}"
INVENTORY_URL = env.text("INVENTORY_URL", SANDBOX_URL)
PAYMENT_URL = env.text("PAYMENT_URL", SANDBOX_URL)
PAYMENT_SECRET_KEY = env.text("PAYMENT_SECRET_KEY", "sk_test_sandbox")
# of its webhooks: during a change there are two, separated by a comma
PAYMENT_WEBHOOK_SECRETS = env.words(
    "PAYMENT_WEBHOOK_SECRET", "whsec_sandbox" if PAYMENT_URL == SANDBOX_URL else ""
)
SHIPPING_URL = env.text("SHIPPING_URL", SANDBOX_URL)
COURIER_URL = env.text("COURIER_URL", SANDBOX_URL)
MAIL_URL = env.text("MAIL_URL", SANDBOX_URL)

# --- Orders: docs/run/configure.md, on parcels, stock, risk, returns and subscriptions ------------
CARRIER_AWAY_AFTER = env.number("CARRIER_AWAY_AFTER", 7200, least=1)  # seconds
LOW_STOCK = env.number("LOW_STOCK", 5, least=0)  # units on hand, from which on they are few
STOCK_READ_EVERY = env.number("STOCK_READ_EVERY", 300, least=0)  # seconds; 0: never
RISK_ASKED_FROM = env.number("RISK_ASKED_FROM", 65)  # the provider's score, from 0 to 100
RISK_DECISION_HOURS = env.number("RISK_DECISION_HOURS", 4, least=1)
RISK_UNDECIDED = env.text("RISK_UNDECIDED", "undo")  # what follows if no person has decided by then
if RISK_UNDECIDED not in {"undo", "pass", "error"}:
    raise ImproperlyConfigured(f"RISK_UNDECIDED is {RISK_UNDECIDED!r}; it is undo, pass or error.")
RETURN_WITHIN_DAYS = env.number("RETURN_WITHIN_DAYS", 30)  # from the order's completion on
CLAIM_AFTER_DAYS = env.number("CLAIM_AFTER_DAYS", 7)  # as well
SUBSCRIPTION_REMIND_DAYS = env.number("SUBSCRIPTION_REMIND_DAYS", 3, least=1)  # before each order
SUBSCRIPTION_PRICE_NOTICE_DAYS = env.number("SUBSCRIPTION_PRICE_NOTICE_DAYS", 14, least=1)
SUBSCRIPTION_UNPAID = env.number("SUBSCRIPTION_UNPAID", 2, least=1)  # in a row; then it is paused

# --- Telling customers ---------------------------------------------------------------------------
CURRENCY = env.currency("CURRENCY", "EUR")  # the shop's: docs/run/configure.md#money
SHOP_TIME_ZONE = env.zone("SHOP_TIME_ZONE", "Europe/Berlin")  # where a customer's own is not known
SELLER_ADDRESS = env.text(  # on printed orders and in letters
    "SELLER_ADDRESS",
    "Kettlewell, Lindenstraße 12, 10969 Berlin" if ENVIRONMENT == "demo" else "",
)
SITE_URL = env.text("SITE_URL", f"http://localhost:{env.number('PORT', 8000)}")  # links in letters

# --- Telling people of alerts --------------------------------------------------------------------
RUNBOOK_URL = env.text("RUNBOOK_URL")  # the dashboard's own page, unless it is set
TRACE_URL = env.text("TRACE_URL")  # where a trace is looked at: the task's page links to it
if TRACE_URL and "{trace_id}" not in TRACE_URL:
    raise ImproperlyConfigured(f"TRACE_URL is {TRACE_URL!r}; it must have {{trace_id}} in it.")
globals().update(mail.configuration(env.text("EMAIL_URL"), folders.data_dir() / "mail"))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("DEFAULT_FROM_EMAIL", "alerts@localhost")
WEBHOOK_HOSTS = env.words("WEBHOOK_HOSTS")
WEBHOOKS_ALLOW_PRIVATE = env.flag("WEBHOOKS_ALLOW_PRIVATE", default=False)

# --- People --------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = (
    "account_login"  # of customers or of staff, by the page that asks (`sasweb/staff/urls.py`)
)
LOGIN_REDIRECT_URL = "/ops/"
LOGOUT_REDIRECT_URL = "/"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.1  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_CALLABLE = "sasweb.login.locked_out"
AXES_CLIENT_IP_CALLABLE = "sasweb.addresses.client"

# Staff (docs/run/secure.md): customers' sessions are Django's, and end after two weeks.
SECOND_FACTOR = env.flag(
    "SECOND_FACTOR", default=HTTPS
)  # without it, each person may still have one
STAFF_IDLE_MINUTES = env.number("STAFF_IDLE_MINUTES", 30 if HTTPS else 0)  # 0: no such end
STAFF_SESSION_HOURS = env.number("STAFF_SESSION_HOURS", 12 if HTTPS else 0)
if min(STAFF_IDLE_MINUTES, STAFF_SESSION_HOURS) < 0:
    raise ImproperlyConfigured("STAFF_IDLE_MINUTES and STAFF_SESSION_HOURS may not be negative.")
PASSWORD_RESET_TIMEOUT = 3600  # seconds for which the link in a letter is good

# Accounts by django-allauth: its pages and tables, with the limits of `orders/rate_limit.py` and axes.
ACCOUNT_ADAPTER = "sasweb.accounts.adapter.AccountAdapter"
MFA_ADAPTER = "sasweb.accounts.adapter.FactorAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}  # of customers it is the e-mail address
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*"]
ACCOUNT_UNIQUE_EMAIL = False  # a customer may be one of staff, too
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False  # its own are counted in one process
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600  # seconds after which a change of second factors asks again
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Kettlewell" if ENVIRONMENT == "production" else f"Kettlewell ({ENVIRONMENT})"
MFA_TOTP_TOLERANCE = 1  # steps by which an app's clock may be wrong
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_RECOVERY_CODE_DIGITS = 24  # 80 bits

# --- Safety --------------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}
CSRF_FAILURE_VIEW = "sasweb.refusals.csrf_failure"
SESSION_ENGINE = "sasweb.session_store"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.number("HSTS_SECONDS", 31_536_000) if HTTPS else 0
# for this host alone: whether others of the domain have HTTPS is not this program's to decide
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 262_144

# --- Words, times, files -------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_SECURE = HTTPS
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
FORMAT_MODULE_PATH = ["sasweb.formats"]
USE_TZ = True
TIME_ZONE = env.zone("TIME_ZONE", "UTC")
STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT") or folders.data_dir() / "static")
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "sasweb.static_files.StaticFiles"},
}
# Names with a hash are cached for ever. Whitenoise would find them by asking for files that are not there.
WHITENOISE_ROOT = BASE_DIR / "sasweb" / "root"  # /robots.txt, /favicon.ico
WHITENOISE_IMMUTABLE_FILE_TEST = r"^.+\.[0-9a-f]{12}(\..+)?$"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- One log, a line an event ----------------------------------------------------------------------
LOGGING = log.configuration()
