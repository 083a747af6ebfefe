"""The operators' dashboard's addresses, below /ops/."""

from django.urls import URLPattern, URLResolver, path

from . import views

app_name = "ops"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.overview, name="overview"),
    path("incidents/", views.incident_list, name="incidents"),
    path("incidents/<int:incident_id>/", views.incident, name="incident"),
    *(
        path(f"incidents/<int:incident_id>/{name}/", view, name=f"incident_{name}")
        for name, view in (
            ("acknowledge", views.acknowledge_incident),
            ("assign", views.assign_incident),
            ("note", views.note_incident),
            ("mute", views.mute_incident),
            ("unmute", views.unmute_incident),
            ("resolve", views.resolve_incident),
        )
    ),
    path("tasks/", views.task_list, name="tasks"),
    path("views/", views.save_view, name="save_view"),
    path("views/<int:view_id>/forget/", views.forget_view, name="forget_view"),
    path("tasks/<uuid:task_id>/", views.task, name="task"),
    path("tasks/<uuid:task_id>/undo/", views.undo, name="undo"),
    path("tasks/<uuid:task_id>/priority/", views.priority, name="priority"),
    path("steps/<int:step_id>/resubmit/", views.resubmit, name="resubmit"),
    path("steps/<int:step_id>/row/", views.row, name="row"),
    path("steps/<int:step_id>/change/", views.change, name="change"),
    path("steps/<int:step_id>/by-hand/", views.by_hand, name="by_hand"),
    path("holds/new/", views.hold, name="hold"),
    path("holds/<int:hold_id>/release/", views.release, name="release"),
    path("alerts/<int:alert_id>/acknowledge/", views.acknowledge, name="acknowledge"),
    path("alerts/<int:alert_id>/settle/", views.settle, name="settle"),
    path("operations/", views.operation_list, name="operations"),
    path("operations/new/", views.operation_new, name="operation_new"),
    path("operations/<int:operation_id>/", views.operation, name="operation"),
    path(
        "operations/<int:operation_id>/confirm/", views.operation_confirm, name="operation_confirm"
    ),
    path(
        "operations/<int:operation_id>/likewise/",
        views.operation_likewise,
        name="operation_likewise",
    ),
    path("operations/<int:operation_id>/look/", views.operation_look, name="operation_look"),
    path(
        "operations/<int:operation_id>/approve/", views.operation_approve, name="operation_approve"
    ),
    path("operations/<int:operation_id>/pause/", views.operation_pause, name="operation_pause"),
    path("operations/<int:operation_id>/resume/", views.operation_resume, name="operation_resume"),
    path("operations/<int:operation_id>/abort/", views.operation_abort, name="operation_abort"),
    path("agents/", views.agents, name="agents"),
    path("agents/<str:agent>/probe/", views.probe, name="probe"),
    path("dead-letters/", views.letters, name="dead_letters"),
    path("dead-letters/retry/", views.retry_letters, name="dead_letters_retry"),
    path("dead-letters/close/", views.close_letters, name="dead_letters_close"),
    path("system/", views.system, name="system"),
    path("audit/", views.audit, name="audit"),
    path("workflows/", views.workflows, name="workflows"),
]
