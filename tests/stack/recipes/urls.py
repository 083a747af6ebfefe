"""The project's addresses, and that of the page's webhook."""

from django.urls import path

from sasweb import urls as project
from tests.stack.recipes.workflow import bank_reports

handler400, handler403 = project.handler400, project.handler403
handler404, handler500 = project.handler404, project.handler500
urlpatterns = [path("bank_reports", bank_reports), *project.urlpatterns]
