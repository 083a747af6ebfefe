#!/usr/bin/env python
"""Django's command line: `python manage.py help` lists the commands."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    # the name of this process in logs and traces: work-scheduler
    command = [word for word in sys.argv[1:3] if not word.startswith("-")]
    os.environ.setdefault("PROCESS", "-".join(command) or "manage")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
