"""The server's verbs: serve, and token, which says who may use it."""

import json
from typing import Annotated

import typer

from aftereffect.core.errors import InvalidArgument
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import Form, Store
from aftereffect.service.cli.output import Format, speaking
from aftereffect.service.local import DEFAULT_STORE, database, is_server, opened

token = typer.Typer(name="token", help="Who may use the server: make, list and revoke tokens.", no_args_is_help=True)


Database = Annotated[
    str, typer.Option("--store", envvar="AFTEREFFECT_STORE", help="A SQLite file or a database URL to serve from.")
]


def serve(
    host: Annotated[str, typer.Option(envvar="AFTEREFFECT_HOST", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="AFTEREFFECT_PORT", help="The port; 0 takes a free one.")] = 8000,
    store: Database = DEFAULT_STORE,
    demo: Annotated[bool, typer.Option("--demo", help="Make a demonstration experiment if there is none.")] = False,
    form: Form = Format.TABLE,
) -> None:
    """Run the server: REST, dashboard, metrics. Beyond this machine it asks for tokens. Ctrl-C stops it."""
    with speaking(form):
        from pydantic import ValidationError

        from aftereffect.service.api.server import announce
        from aftereffect.service.api.server import serve as run
        from aftereffect.service.config import Config
        from aftereffect.service.demo import ensure
        from aftereffect.service.store.store import Store

        try:
            config = Config(host=host, port=port, store=database(store))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise InvalidArgument(f"{name}: {first['msg']}, but got {first['input']!r}") from None
        if demo:
            with Store.open(config.store) as opened_store:
                ensure(opened_store)
        run(config, ready=announce if form is Format.TABLE else _announce_as_json)


def _announce_as_json(address: str) -> None:
    """Say where the service is on a line of its own, the first."""
    typer.echo(json.dumps({"address": address}))


Scopes = Annotated[list[str], typer.Option("--scope", help="read, play or admin; give one or more.")]


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what it is for.")],
    scope: Scopes,
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Make a token and show it, this once: it is stored as a hash only."""
    with speaking(form), opened(store, create=not is_server(store), plays=False) as service:
        made = service.create_token(name, scope)
        output.show(form, made, [str(made["token"])])


@token.command("list")
def list_tokens(store: Store = DEFAULT_STORE, form: Form = Format.TABLE) -> None:
    """List tokens: id, name, scopes."""
    with speaking(form), opened(store, plays=False) as service:
        found = service.tokens()
        output.show(form, {"items": [dict(one) for one in found]}, output.tokens(found))


@token.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="From `token list`.")],
    store: Store = DEFAULT_STORE,
    form: Form = Format.TABLE,
) -> None:
    """Make a token worthless, at once."""
    with speaking(form), opened(store, plays=False) as service:
        service.revoke_token(token_id)
        output.show(form, {"revoked": token_id}, [f"Token {token_id} is revoked."])
