"""The dashboard: pages for people, at `/`. Reading and reporting work without JavaScript.

routes   the list, one experiment, the data of its charts, static files     views    what the pages show, rendered
actions  buttons and the form for a new experiment                          charts   the data behind the charts
auth     sign-in, and what a reader may do                                  forms    what a form's fields mean

`templates/` holds the pages, with the timeline of arms as SVG; `static/charts.js` draws the charts.
"""
