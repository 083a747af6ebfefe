"""Times that Postgres can hold and Python cannot."""

ODD_TIMES = (
    "11533-01-01 00:00:00+00",
    "294276-12-31 23:59:59+00",
    "0044-03-15 12:00:00+00 BC",
    "infinity",
    "-infinity",
)
