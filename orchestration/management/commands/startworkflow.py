"""`manage.py startworkflow NAME`: the beginnings of an application with a workflow, which runs at once."""

from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.templates import TemplateCommand

from orchestration import installation, registry

LONGEST = 32  # its agent's name is longer, and stands in lines of code
PORT = 8999  # of the fake partner
NEXT = """
{name}/ has a workflow of one step, an agent, a fake partner, and a test. Next:

  1. Add "{name}" to INSTALLED_APPS.
  2. Test it:                      python manage.py test {name}
  3. Make the agent's policy:      python manage.py migrate
  4. Start the fake partner:       python -m {name}.fake_partner
  5. Start the engine (or `make run`, in its own project), each in a terminal:
                                   python manage.py work --all
                                   python manage.py supervisor
                                   python manage.py housekeeper
  6. Submit a task, and wait for it:
     python manage.py shell -v 0 -c '{submit}'
     python manage.py tasks wait {name} 1

Then put your service's calls into {name}/agent.py, and its steps into {name}/workflow.py.
"""
SUBMIT = (
    'from orchestration.api import submit; submit("{name}", reference="1", data={{"name": "Ada"}})'
)


class Command(TemplateCommand):
    """Makes the application's folder from a template, and says what comes next."""

    help = (
        "Make a Django application with a workflow, an agent, a fake partner and a test. "
        "Example: `manage.py startworkflow trips`."
    )
    missing_args_message = "Name the application, such as `manage.py startworkflow trips`."
    rewrite_template_suffixes = ((".py-tpl", ".py"),)

    def handle(self, **options: Any) -> None:  # type: ignore[override]  # as startapp has it
        """Make the folder in the current one, or in the one that is named."""
        name = options.pop("name")
        self._require_free(name)
        options |= {
            "template": str(Path(installation.__file__).parent / "app_template"),
            "url_setting": f"{name.upper()}_URL",
            "port": PORT,
        }
        super().handle("app", name, options.pop("directory"), **options)
        self.stdout.write(NEXT.format(name=name, submit=SUBMIT.format(name=name)))

    def _require_free(self, name: str) -> None:
        """Raise CommandError unless the name can be that of an application, workflow and agent."""
        if not name.isidentifier() or name != name.lower() or not name.isascii():
            raise CommandError(
                f"{name!r} cannot be the name of a Python package: use lower-case letters, digits and "
                "underscores, beginning with a letter."
            )
        if len(name) > LONGEST:
            raise CommandError(f"{name!r} has {len(name)} characters; at most {LONGEST} are taken.")
        if name in registry.workflows:
            raise CommandError(f"There is a workflow {name!r}. Choose another name.")
