"""The dashboards can be imported: unique panels that do not overlap, and any data source."""

import pytest

from tests.support import prometheus

DASHBOARDS = prometheus.dashboards()
ANY = {"type": "prometheus", "uid": "${datasource}"}


def test_both_dashboards_are_there_under_names_of_their_own():
    assert set(DASHBOARDS) == {"orders.json", "machinery.json"}
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == 2


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboard_has_a_variable_for_the_data_source(name):
    dashboard = DASHBOARDS[name]
    assert "id" not in dashboard  # of the installation that it was exported from
    [variable] = dashboard["templating"]["list"]
    assert (variable["name"], variable["type"]) == ("datasource", "datasource")
    for panel in prometheus.panels(dashboard):
        if panel["type"] != "row":
            assert [
                panel["datasource"],
                *[target["datasource"] for target in panel["targets"]],
            ] == [ANY] * (1 + len(panel["targets"]))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_ids_and_places_of_their_own(name):
    panels = list(prometheus.panels(DASHBOARDS[name]))
    assert len(panels) > 10
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    references = [[target["refId"] for target in panel.get("targets", [])] for panel in panels]
    assert all(len(ids) == len(set(ids)) for ids in references)
