"""The web server's way in: `gunicorn sasweb.wsgi`."""

import os
import sys

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
# A thread that comes back from a statement waits this long (in seconds) for one that computes. A
# request has several statements, so with the usual 5 ms short ones wait for long ones again and again.
sys.setswitchinterval(0.0005)
application = get_wsgi_application()
