"""The commands on stored records: export, verify, backup, restore-backup."""

from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aftereffect.core.errors import InvalidArgument
from aftereffect.service.cli import output
from aftereffect.service.cli.arguments import DEFAULT_STORE, Experiment, Store, chosen
from aftereffect.service.cli.output import Answer

if TYPE_CHECKING:
    from aftereffect.service.protocol import Service


class Kind(StrEnum):
    """The file formats of an export."""

    CSV = "csv"
    PARQUET = "parquet"


def export(
    service: "Service",
    experiment: Experiment = None,
    out: Annotated[Path | None, typer.Option(help="The file; by default CSV goes to standard output.")] = None,
    kind: Annotated[Kind | None, typer.Option("--format", "-f", help="By default from the file's extension.")] = None,
) -> None:
    """Write the record, one row per unit and round, as CSV or Parquet."""
    if kind is None:
        kind = Kind.PARQUET if out is not None and out.suffix == ".parquet" else Kind.CSV
    if out is None and kind is Kind.PARQUET:
        raise InvalidArgument("--out must name a file for Parquet, but it is missing")
    content = service.export(chosen(service, experiment), kind.value)
    if out is None:
        typer.echo(content.decode(), nl=False)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        # Errors from writing, unlike those from opening, do not have the file name.
        error.filename = str(out)
        raise
    typer.echo(f"Exported to {out}: {len(content):,} bytes")


def verify(service: "Service", experiment: Experiment = None) -> Answer:
    """Replay the log and compare the result with the stored data, bit for bit. Without a name: every experiment."""
    found = service.verify(None if experiment is None else chosen(service, experiment))
    return Answer([one.data for one in found], output.verdicts(found), output.verified(found))


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist yet.")],
    store: Store = DEFAULT_STORE,
) -> Answer:
    """Copy the whole store into one file; a server may be using it. The file is itself a store."""
    from aftereffect.service.local import existing
    from aftereffect.service.store.backup import backup as copy
    from aftereffect.service.store.database import Database

    # Reading needs no lock, so this does not wait for other processes.
    with closing(Database(existing(store))) as database:
        copy(database, target)
    size = target.stat().st_size
    return Answer({"file": str(target), "bytes": size}, [f"Backed up to {target}: {size:,} bytes"])


def restore_backup(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` wrote.")],
    store: Store = DEFAULT_STORE,
    without_tokens: Annotated[
        bool, typer.Option("--without-tokens", help="Leave tokens out; tokens revoked since would be valid again.")
    ] = False,
) -> Answer:
    """Restore a backup into a new or empty store, and verify it."""
    from aftereffect.service.local import Local, database
    from aftereffect.service.store.backup import restore_backup as restore

    restore(source, database(store), tokens=not without_tokens)
    with Local.open(store) as service:
        found = service.verify()
        valid = 0 if without_tokens else sum(one.revoked_at is None for one in service.tokens())
    data = {"items": [one.data for one in found], "tokens": valid}
    return Answer(data, [*output.verdicts(found), *output.restored_tokens(valid)], output.verified(found))
