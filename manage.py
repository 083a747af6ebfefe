#!/usr/bin/env python
"""Django's command line: `python manage.py help` lists the commands."""

import gc
import os
import sys

if __name__ == "__main__":
    # what is imported stays: to look for garbage in it takes a tenth of a start
    gc.set_threshold(20_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    # the name of this process in logs and traces: work-scheduler
    command = [word for word in sys.argv[1:3] if not word.startswith("-")]
    os.environ.setdefault("PROCESS", "-".join(command) or "manage")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
