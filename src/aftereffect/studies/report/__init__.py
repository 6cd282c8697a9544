"""From a study's rows to one self-contained page: figures, tables, and sentences computed from the rows.

    sections    `write_report`, and the sections of any report: regret over rounds, against a setting, and who does best
    frames      rows with readable names
    charts      style and file formats of figures
    page        the HTML
    power_laws  `ae.studies.fit`

A section is a function of (page, rows) that adds to the page and returns sentences for "What was found". Those of
single studies are beside their files, in docs/studies.
"""
