"""The web server's way in: `gunicorn sasweb.wsgi`."""

import gc
import os
import sys

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
application = get_wsgi_application()
# A thread that comes back from a statement waits this long (in seconds) for one that computes. A
# request has several statements, so with the usual 5 ms short ones wait for long ones again and again.
sys.setswitchinterval(0.002)
# What is loaded stays: without that, everybody waits now and then while all of it is searched for garbage.
_ = get_resolver().url_patterns  # loads all views
gc.collect()
gc.freeze()
