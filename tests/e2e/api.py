"""A small client of the Kubernetes API over one kept connection. Objects are plain dictionaries."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]


class ApiError(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Api:
    """Not for two threads at once. A connection that broke (a restart of the server) is made anew, once a request."""

    def __init__(self, url: str, token: str, agent: str = "simulator") -> None:
        self._where = urlsplit(url)
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": agent, "Accept": "application/json"}
        self._connection: http.client.HTTPSConnection | None = None

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer, parsed. ApiError for what is no success; OSError when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({"Content-Type": kind} if data is not None else {})}
        for attempt in (1, 2):
            if self._connection is None:
                context = ssl._create_unverified_context()
                assert self._where.hostname
                self._connection = http.client.HTTPSConnection(
                    self._where.hostname, self._where.port, timeout=30, context=context
                )
            try:
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                self._connection = None
                if attempt == 2:
                    raise OSError(str(error)) from error
        if response.status >= 300:
            raise ApiError(response.status, text.decode(errors="replace")[:500])
        return json.loads(text) if text else None

    def close(self) -> None:
        """Ends the connection; the next request makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def list(self, path: str, **query: str) -> list[Object]:
        """The items of a collection; none when the API is not there."""
        try:
            return list(self.request("GET", path + (f"?{urlencode(query)}" if query else ""))["items"])
        except ApiError as error:
            if error.code == 404:
                return []
            raise

    def get(self, path: str) -> Object | None:
        """An object, None when there is none."""
        try:
            found: Object = self.request("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found

    def create(self, path: str, item: Object) -> bool:
        """Whether the object is new; one that exists stays."""
        try:
            self.request("POST", path, item)
        except ApiError as error:
            if error.code == 409:
                return False
            raise
        return True

    def merge(self, path: str, patch: Object) -> Object | None:
        """A JSON merge patch; None when the object is gone."""
        try:
            changed: Object = self.request("PATCH", path, patch, "application/merge-patch+json")
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return changed

    def delete(self, path: str, *, grace: int | None = None) -> None:
        """Asks for the removal; fine when it is gone."""
        try:
            self.request("DELETE", path, None if grace is None else {"gracePeriodSeconds": grace})
        except ApiError as error:
            if error.code != 404:
                raise
