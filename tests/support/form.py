"""What a browser sends of a form as it is shown."""

from tests.support.page import Element

NOT_SENT = {"submit", "button", "reset", "image"}


def fields_of(form: Element) -> dict[str, list[str]]:
    """Return the values of a form's fields by their names, as `Client.post` takes them."""
    sent: dict[str, list[str]] = {}
    for field in form.all():
        name = field.attributes.get("name")
        if name and "disabled" not in field.attributes:
            for value in _values(field):
                sent.setdefault(name, []).append(value)
    return sent


def _values(field: Element) -> list[str]:
    kind = field.attributes.get("type", "text")
    if field.tag == "input" and kind in {"checkbox", "radio"}:
        return [field.attributes.get("value", "on")] if "checked" in field.attributes else []
    if field.tag == "input":
        return [] if kind in NOT_SENT else [field.attributes.get("value", "")]
    if field.tag == "textarea":
        text = "".join(field.children).removeprefix("\n")
        return [text.replace("\r\n", "\n").replace("\n", "\r\n")]
    if field.tag == "select":
        options = field.all("option")
        chosen = [option for option in options if "selected" in option.attributes]
        if not chosen and "multiple" not in field.attributes:
            chosen = options[:1]
        return [option.attributes.get("value", option.text) for option in chosen]
    return []
