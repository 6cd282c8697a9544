"""The REST API: `app.create_app(store, config)` makes it, `server.serve(config)` runs it.

app        the FastAPI app and its middleware     routes     every endpoint, and /docs
auth       tokens, scopes, Host and Origin        body       request bodies: strict JSON into a model
limits     request rate, threads for store calls  problems   errors as problem+json
server     start and stop of the process          telemetry  metrics and logs
"""
