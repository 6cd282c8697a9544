"""The dashboard: web pages at `/`. Reading and reporting work without JavaScript.

routes   the list, one experiment, the data of its charts, static files     views    contents of the pages, rendered
actions  buttons and the form for a new experiment                          charts   the data of the charts
auth     sign-in, and the user's permissions                                forms    form fields as settings

`templates/` has the pages, with the timeline of arms as SVG; `static/charts.js` draws the charts.
"""
