"""Formats of dates and times by language, where Django's own are not ours (`FORMAT_MODULE_PATH`)."""
