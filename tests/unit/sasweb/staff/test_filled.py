"""Filling in a page's form leaves all else of the page as it is."""

import pytest

from sasweb.staff.filled import filled
from tests.support.page import elements

PAGE = """<!doctype html>
<!-- a comment --><script>if (a < b && c) { x("</p>"); }</script>
<form method="get"><input name="q" value="old"></form>
<details><summary>More &amp; more</summary>
<form class="a" method="post" action="../do/">
  <input type="hidden" name="csrfmiddlewaretoken" value="fresh">
  <input type="hidden" name="attempt" value="2">
  <input name="reason" value="old"><input name="other" value="kept">
  <input type="password" name="pin"><input type="file" name="file">
  <textarea name="text">old &lt;b&gt; text</textarea>
  <input type="checkbox" name="box" checked><input type="checkbox" name="many" value="1">
  <input type="checkbox" name="many" value="2"><input type="radio" name="how" value="a" checked>
  <input type="radio" name="how" value="b"/>
  <select name="one"><option value="x" selected>X</option><option value="y">Y &#43; 1</option></select>
  <input name="twice"><input name="twice">
</form></details>
<form method="post" action="/do/"><input name="reason" value="second"></form>
"""
FIELDS = [
    ["reason", 'a "b" <c> & d'], ["attempt", "1"], ["csrfmiddlewaretoken", "old"], ["pin", "1234"],
    ["text", "\n<b>new</b>"], ["many", "2"], ["how", "b"], ["one", "y"], ["twice", "1"], ["twice", "2"],
]  # fmt: skip


def fill(path="/do/", page=PAGE, fields=FIELDS, *, whole=True, address="/at/"):
    return filled(page, {"path": path, "fields": fields, "whole": whole}, address)


def ticked(form, name):
    return [one["value"] for one in form.all(f'[name="{name}"]') if "checked" in one.attributes]


def test_fields_of_the_form_get_their_values():
    shown = elements(fill())
    form = shown.one("form[data-opened]")
    assert form.one('[name="reason"]')["value"] == 'a "b" <c> & d'
    assert form.one('[name="other"]')["value"] == "kept"
    assert form.one('[name="attempt"]')["value"] == "2"  # what the page has hidden is newer
    assert form.one('[name="csrfmiddlewaretoken"]')["value"] == "fresh"
    assert "value" not in form.one('[name="pin"]').attributes
    assert form.one("textarea").text.replace("&lt;", "<").replace("&gt;", ">") == "<b>new</b>"
    assert "checked" not in form.one('[name="box"]').attributes
    assert (ticked(form, "many"), ticked(form, "how")) == (["2"], ["b"])
    assert [one["value"] for one in form.all("option") if "selected" in one.attributes] == ["y"]
    assert [one["value"] for one in form.all('[name="twice"]')] == ["1", "2"]
    assert "open" in shown.one("details").attributes
    assert shown.one("[data-kept]")


def test_all_else_stays_as_it_is():
    html = fill()
    for part in (PAGE[: PAGE.index("<details>")], PAGE[PAGE.index("</details>") :]):
        assert part in html
    assert "<summary>More &amp; more</summary>" in html
    assert "Y &#43; 1</option>" in html


def test_form_is_found_by_its_address():
    assert fill("/at/else/") == ""
    assert fill("/do/?in=row")  # a query that an action in place adds
    same = '<form method="post"><input name="reason"></form>'
    assert 'value="x"' in fill("/at/", same, [["reason", "x"]])
    assert fill("/at/", same.replace("post", "get"), [["reason", "x"]]) == ""


def test_form_without_kept_fields_stays_as_it_was():
    html = fill(fields=[], whole=False)
    assert '<input name="reason" value="old">' in html
    assert '<input type="checkbox" name="box" checked>' in html
    assert len(elements(html).one("[data-kept]").text) > len(
        elements(fill()).one("[data-kept]").text
    )


@pytest.mark.parametrize("text", ["</textarea><script>x()</script>", '"><script>x()</script>'])
def test_values_cannot_leave_their_field(text):
    html = fill(fields=[["reason", text], ["text", text]])
    assert html.count("<script>") == 1
