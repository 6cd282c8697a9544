"""From a study's rows to one self-contained page: figures, tables, and sentences that are computed from the rows.

    sections    `write_report`, `publish`, and which sections there are
    views       rows with readable names
    charts      how figures look
    page        the HTML
    curves, growth, theorems, ratios, price, wrong_delay, default_player     the sections, by what they show

A new section is a function of (page, rows) that adds to the page and returns sentences for "What was found"; it gets a
name in `sections.SECTIONS`.
"""
