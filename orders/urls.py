"""The shop's addresses."""

from django.urls import URLPattern

app_name = "shop"
urlpatterns: list[URLPattern] = []
