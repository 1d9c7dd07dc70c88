"""Limits on the requests of clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on everything that a client controls.

    body         bytes of a request body
    query        characters of a search query
    texts        inputs of one embeddings request, as at OpenAI
    text         characters of one such input
    hits         sentences in one answer
    seconds      for the head of a request to arrive, and again for its body
    answer       seconds for the client to take an answer
    work         seconds for a request to be encoded and searched, waiting included; then it gets 504 and is dropped
    grace        seconds allowed for open requests when the server stops
    requests     maximum requests waiting for the encoder; more get 503
    small, large bytes up to which a body is always read, and how many larger ones, or small ones of more than 512
                 texts, are held in memory at once; more get 503
    connections  open connections, and at most half of the files that the process may open; another one replaces the
                 one that has been idle longest
    """

    body: int = 4 << 20
    query: int = 10_000
    texts: int = 2048
    text: int = 50_000
    hits: int = 200
    seconds: float = 10.0
    answer: float = 60.0
    work: float = 120.0
    grace: int = 25
    requests: int = 256
    small: int = 64 << 10
    large: int = 16
    connections: int = 512
