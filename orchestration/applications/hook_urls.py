"""The addresses at which agents' services report by webhooks; a project includes them below /hooks/."""

from django.urls import path

from .hooks import receive

urlpatterns = [path("<str:agent>/", receive, name="webhook")]
