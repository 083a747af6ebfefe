"""Formats of dates and times by language, in place of Django's (`FORMAT_MODULE_PATH`)."""
