"""Debug pages show no secret, wherever it stands."""

import sys
from html import escape

import pytest
from django.test import RequestFactory
from django.views.debug import get_exception_reporter_class, technical_500_response

from sasweb import debug_page

PASSWORD = "p<w>&'d/1"


@pytest.fixture(params=["by URL", "by option"])
def _services(request, settings):
    settings.DEBUG = True
    settings.SECRET_KEY = "the-secret-key-of-this-test"
    settings.MESSAGE_KEYS = ["the-message-key-of-this-test"]
    settings.REDIS_URL = "rediss://user:r3dis-password@redis.example/0"
    settings.RQ_QUEUES = {"reports": {"URL": settings.REDIS_URL}}
    settings.DATABASE_URL = f"postgresql:///sas?host=db&password={PASSWORD}"
    by = (
        {"PASSWORD": PASSWORD} if request.param == "by URL" else {"OPTIONS": {"password": PASSWORD}}
    )
    settings.DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", **by}}
    debug_page._secrets.cache_clear()
    yield
    debug_page._secrets.cache_clear()


@pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")
@pytest.mark.parametrize("accept", ["text/html", "text/plain"])
@pytest.mark.usefixtures("_services")
def test_debug_page_shows_no_secret(settings, accept):
    def fails(connection_values):
        raise OSError(f"cannot connect to {settings.REDIS_URL}")

    request = RequestFactory().get("/", headers={"accept": accept})
    try:
        fails({"password": PASSWORD, "key": settings.SECRET_KEY, "url": settings.REDIS_URL})
    except OSError:
        page = technical_500_response(request, *sys.exc_info()).content.decode()
    assert "cannot connect to rediss://user:**********@redis.example" in page
    for secret in (
        PASSWORD,
        escape(PASSWORD),
        escape(repr(PASSWORD)),
        "r3dis-password",
        *settings.MESSAGE_KEYS,
        settings.SECRET_KEY,
    ):
        assert secret not in page
    assert get_exception_reporter_class(request) is debug_page.Reporter
