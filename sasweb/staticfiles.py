"""Static files, without those that no page of ours asks for."""

from django.contrib.staticfiles.apps import StaticFilesConfig


class StaticFiles(StaticFilesConfig):
    """Leaves out what django-ninja brings and we do not use: megabytes to hash and to compress."""

    ignore_patterns = [*StaticFilesConfig.ignore_patterns, "redoc.*", "swagger-ui-bundle.js.map"]
