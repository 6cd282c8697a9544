"""The REST API of the decision service: `app.create_app(store, config)`; the routes are listed in `operations.py`."""
