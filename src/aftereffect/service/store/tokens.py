"""Access tokens and their scopes. A token is shown once; the store has only its hash.

A fast hash is sufficient: a token has 256 random bits and cannot be guessed from its hash.
"""

import base64
import hashlib
import hmac
import secrets

from sqlalchemy import Connection, insert, select, update

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused
from aftereffect.service.messages import KnownToken
from aftereffect.service.store import schema

PREFIX = "ae_"
_tokens = schema.tokens.c


def hashed(token: str) -> str:
    """Return the hash of a token, as stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def derived(key: str, salt: str) -> str:
    """Return the token that is made for a key and a random salt; without either it cannot be guessed.

    The salt is stored, and of the key only a hash: a request repeated with its key gets the same token again.
    """
    digest = hmac.digest(salt.encode(), key.encode(), "sha256")
    return PREFIX + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def create(connection: Connection, name: str, scopes: list[str], key: str, now: str) -> dict[str, str]:
    """Store a token derived from a key, and return its salt."""
    salt = secrets.token_urlsafe(32)
    values = {"id": secrets.token_hex(8), "name": name, "scopes": " ".join(scopes), "hash": hashed(derived(key, salt))}
    connection.execute(insert(schema.tokens).values(**values, created_at=now))
    return {"salt": salt}


def revoke(connection: Connection, identity: str, now: str) -> dict[str, str]:
    """Revoke a token; revoking it again keeps the first date."""
    # Locked on PostgreSQL, so that two servers do not revoke the last two at once.
    query = select(_tokens.id, _tokens.scopes, _tokens.revoked_at).order_by(_tokens.id).with_for_update()
    found = {row.id: row for row in connection.execute(query)}
    if identity not in found:
        raise Refused("not_found", f"token must be the id of a token, but got {shown(identity)}")
    if found[identity].revoked_at is not None:
        return {}
    if [id for id, row in found.items() if row.revoked_at is None and "admin" in row.scopes.split()] == [identity]:
        rule = "the last token with the scope 'admin' cannot be revoked"
        raise Refused("forbidden", f"{rule}; create another one first")
    connection.execute(update(schema.tokens).where(_tokens.id == identity).values(revoked_at=now))
    return {}


def listed(connection: Connection) -> list[KnownToken]:
    """Return all tokens, in the order of their creation."""
    query = select(_tokens.id, _tokens.name, _tokens.scopes, _tokens.created_at, _tokens.revoked_at)
    found = connection.execute(query.order_by(_tokens.created_at, _tokens.id)).mappings()
    return [KnownToken(**{**row, "scopes": row["scopes"].split()}) for row in found]


def scopes_of(connection: Connection, token: str) -> frozenset[str] | None:
    """Return a token's scopes, None if it is unknown or revoked."""
    query = select(_tokens.scopes).where(_tokens.hash == hashed(token), _tokens.revoked_at.is_(None))
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else frozenset(found.split())
