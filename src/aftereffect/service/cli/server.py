"""The commands for a server: serve, and token to control access."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import DEFAULT_STORE, Form, Store, command
from aftereffect.service.cli.output import Answer, Format

if TYPE_CHECKING:
    from aftereffect.service.protocol import Service

token = typer.Typer(name="token", help="Create, list and revoke the tokens of a server.", no_args_is_help=True)


def serve(
    host: Annotated[str, typer.Option(envvar="AFTEREFFECT_HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="AFTEREFFECT_PORT", help="The port; 0 takes a free one.")] = 8000,
    store: Store = DEFAULT_STORE,
    demo: Annotated[bool, typer.Option("--demo", help="Create a demo experiment if there is none.")] = False,
    form: Form = Format.TABLE,
) -> None:
    """Run the server: REST API, dashboard, metrics. Tokens are required except on loopback. Ctrl-C stops it."""
    from aftereffect.service.api.server import serve as run
    from aftereffect.service.config import Config
    from aftereffect.service.demo import ensure
    from aftereffect.service.errors import checked
    from aftereffect.service.local import database
    from aftereffect.service.store import store as stores

    config = checked(Config, {"host": host, "port": port, "store": database(store)}, "the configuration")
    if demo:
        with stores.Store.open(config.store) as made:
            ensure(made)

    def announce(address: str) -> None:
        typer.echo(json.dumps({"address": address}) if form is Format.JSON else f"Aftereffect is at {address}")

    run(config, announce)


@token.command()
@command
def create(
    name: Annotated[str, typer.Argument(help="Who or what it is for.")],
    scope: Annotated[list[str], typer.Option("--scope", help="read, play or admin; give one or more.")],
    store: Store = DEFAULT_STORE,
) -> Answer:
    """Create a token and print it. It cannot be shown again: only its hash is stored."""
    from aftereffect.service.local import open_service

    with open_service(store, create=True) as service:
        made = service.create_token(name, scope)
    return Answer(made.data, [made.token])


@token.command("list")
@command
def list_tokens(service: "Service") -> Answer:
    """List tokens: id, name, scopes."""
    found = service.tokens()
    return Answer({"items": [one.data for one in found]}, output.tokens(found))


@token.command()
@command
def revoke(
    service: "Service", token_id: Annotated[str, typer.Argument(metavar="ID", help="From `token list`.")]
) -> Answer:
    """Revoke a token, effective immediately."""
    service.revoke_token(token_id)
    return Answer({"revoked": token_id}, [f"Token {token_id} is revoked."])
