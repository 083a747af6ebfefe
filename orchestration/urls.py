"""The operators' dashboard's addresses, below /ops/."""

from django.urls import URLPattern, URLResolver

app_name = "ops"
urlpatterns: list[URLPattern | URLResolver] = []
