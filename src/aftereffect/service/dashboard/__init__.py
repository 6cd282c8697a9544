"""The dashboard: web pages at `/`. Reading and reporting work without JavaScript.

routes   the list, one experiment, buttons, the form for a new experiment, static files
views    contents of the pages, rendered              forms   form fields as settings
auth     sign-in, and the user's permissions

`templates/` has the pages; `static/charts.js` draws the charts from the answers of the REST API.
"""
