"""The operators' dashboard's addresses, below /ops/."""

from django.urls import URLPattern, URLResolver, path

from . import views

app_name = "ops"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="overview"),
    path("tasks/", views.task_list, name="tasks"),
    path("tasks/<uuid:task_id>/", views.task, name="task"),
    path("steps/<int:step_id>/resubmit/", views.resubmit, name="resubmit"),
]
