# SPDX-License-Identifier: MIT
"""Bytes to and from the daemon, blocking or not, with the same methods."""
from __future__ import annotations

import asyncio
import select
import socket
import ssl
from typing import Optional

CONNECT_SECONDS = 10
LINE_MAX = 1 << 20


def _context(tls: bool) -> Optional[ssl.SSLContext]:
    return ssl.create_default_context() if tls else None


class SyncStream:
    def __init__(self, sock: socket.socket):
        self._socket, self._file = sock, sock.makefile("rb", 1 << 16)

    @classmethod
    def open(cls, host: str, port: int, tls: bool, silence: Optional[float]) -> "SyncStream":
        sock = socket.create_connection((host, port), CONNECT_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = _context(tls)
        if context:
            sock = context.wrap_socket(sock, server_hostname=host)
        sock.settimeout(silence)
        return cls(sock)

    def is_stale(self) -> bool:
        """Has the daemon closed it, or said something that nobody asked for?"""
        return bool(select.select([self._socket], [], [], 0)[0])

    def readline(self) -> bytes:
        return self._file.readline(LINE_MAX)

    def readexactly(self, n: int) -> bytes:
        data = self._file.read(n)
        if len(data) != n:
            raise EOFError("the connection ended")
        return data

    def read(self, n: int) -> bytes:
        return self._file.read1(n)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes another thread that reads
        except OSError:
            pass
        self._file.close()
        self._socket.close()


class AsyncStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence: Optional[float]):
        self._reader, self._writer, self._silence = reader, writer, silence

    @classmethod
    async def open(cls, host: str, port: int, tls: bool, silence: Optional[float]) -> "AsyncStream":
        pair = asyncio.open_connection(host, port, ssl=_context(tls), limit=LINE_MAX)
        return cls(*await asyncio.wait_for(pair, CONNECT_SECONDS), silence)

    def is_stale(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    async def readline(self) -> bytes:
        return await asyncio.wait_for(self._reader.readline(), self._silence)

    async def readexactly(self, n: int) -> bytes:
        return await asyncio.wait_for(self._reader.readexactly(n), self._silence)

    async def read(self, n: int) -> bytes:
        return await asyncio.wait_for(self._reader.read(n), self._silence)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await asyncio.wait_for(self._writer.drain(), self._silence)

    async def close(self) -> None:
        self._writer.close()
