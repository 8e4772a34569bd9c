"""A teacher behind OpenAI's chat API: many requests simultaneously, each repeated until it is answered."""

import asyncio
import json
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

from tqdm import tqdm

from nmt.config.tree import Config
from nmt.data.sources.tables import read_table
from nmt.errors import UserError
from nmt.packages import import_optional
from nmt.storage.remote import local_file
from nmt.synthesis.folder import Answer, Journal
from nmt.text.glossary import Glossary
from nmt.text.language import language_name

KEY = "NMT_TEACHER_KEY"
"""The environment variable with the key of the API, which no file and no message may contain."""
ATTEMPTS, FIRST_WAIT, MAX_WAIT, MAX_SECONDS = 8, 1.0, 60.0, 300.0
"""Attempts per request; the seconds before the second one, which double with each; and those for an answer."""
MAX_RETRY_AFTER = 900.0
"""The longest wait that a server may ask for."""
MAX_LOST = 10
"""Lines without an answer, with none answered between, after which nothing more is asked."""
FATAL, TEMPORARY = (401, 402, 403, 404), (408, 409, 425, 429)
"""Codes of errors that every request would meet, and of those that pass, as 5xx do."""
MAX_EXAMPLES, SHOWN_CHARACTERS = 5, 200
THOUGHTS = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
Request = tuple[str, str]
"""A key for the journal, and a line to translate."""


class Chat:
    """Asks the teacher that the settings name."""

    def __init__(self, config: Config) -> None:
        """Read the key, the terms and the examples."""
        self.http, self.teacher = import_optional("httpx"), config.teacher
        self.languages, self.key = config.data.languages, os.environ.get(KEY, "").strip()
        if not (self.key.isascii() and self.key.isprintable()):
            raise UserError(f"the environment variable {KEY} has characters that no key has: correct it")
        self.glossary, self.examples = Glossary.read(config.decoding.terms), list[tuple[str, str]]()
        if name := self.teacher.examples:
            pairs = read_table(local_file(name, "teacher.examples"), "tsv", self.languages, ())
            for source, target in islice(pairs, MAX_EXAMPLES):
                self.examples += [("user", self.prompt(source)), ("assistant", target)]
        search = config.decoding.search
        self.candidates, self.sampling = search.nbest, {"temperature": 0.0}
        if search.strategy == "sample":
            self.sampling = {"temperature": search.temperature, "top_p": search.top_p}
        self.failure, self.lost_in_a_row, self.reached, self.not_before, self.reserved = "", 0, False, 0.0, 0.0

    def prompt(self, line: str) -> str:
        """Return what is asked for a line."""
        source, target = map(language_name, self.languages)
        prompt = self.teacher.prompt.replace("{source}", source).replace("{target}", target).replace("{text}", line)
        terms = "; ".join(self.glossary.find(line))
        return f"The translation must contain: {terms}\n{prompt}" if terms else prompt

    def request(self, line: str) -> dict[str, Any]:
        """Return the request for the translations of a line."""
        turns = [{"role": role, "content": text} for role, text in (*self.examples, ("user", self.prompt(line)))]
        return {"model": self.teacher.model, "messages": turns, "n": self.candidates, **self.sampling}

    def answer(self, bar: "tqdm[Request]", journal: Journal) -> None:
        """Write the answers to the requests of a progress bar, until the budget is spent."""
        asyncio.run(self._answer(bar, journal))

    async def _answer(self, bar: "tqdm[Request]", journal: Journal) -> None:
        requests, count = iter(bar), self.teacher.requests
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limits = self.http.Limits(max_connections=count, max_keepalive_connections=count)
        async with self.http.AsyncClient(headers=headers, timeout=None, limits=limits) as client:
            await asyncio.gather(*(self._work(client, requests, bar, journal) for _ in range(count)))

    async def _work(self, client: Any, requests: Iterator[Request], bar: "tqdm[Request]", journal: Journal) -> None:
        """Ask for one line after the other, of those that all workers share."""
        cost, budget = self.teacher.cost, self.teacher.budget
        for key, line in requests:
            request, answers, sent, received = self.request(line), list[Answer](), 0, 0
            # a token has at least a byte, and few translations have three times as many as their source
            most = cost(len(json.dumps(request)), 3 * len(line.encode()) * self.candidates)
            if 0 < budget < cost(*journal.tokens) + self.reserved + most:
                return
            self.reserved += most
            while (left := self.candidates - len(answers)) > 0:  # a server may give fewer than it is asked for
                if not (reply := await self._reply(client, {**request, "n": left})):
                    break
                answers, sent, received = answers + reply[0][:left], sent + reply[1], received + reply[2]
            self.reserved -= most
            self.lost_in_a_row = 0 if answers else self.lost_in_a_row + 1
            if self.lost_in_a_row == MAX_LOST:
                raise self._error("does not answer any more")
            if answers:  # also if there are fewer than asked for, because they are paid for
                journal.add(key, answers, (sent, received))
                bar.set_postfix_str(f"price {cost(*journal.tokens):.4f}" if self.teacher.price else "", refresh=False)

    async def _reply(self, client: Any, request: dict[str, Any]) -> tuple[list[Answer], int, int] | None:
        """Return answers and their tokens; None if the server refuses the request, or after too many attempts."""
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(self.not_before - time.monotonic())
            try:
                async with asyncio.timeout(MAX_SECONDS):  # also for an answer that comes byte by byte
                    response = await client.post(f"{self.teacher.url.rstrip('/')}/chat/completions", json=request)
                text = response.text.replace(self.key, "***") if self.key else response.text
                code, self.reached, self.failure = response.status_code, True, f"HTTP {response.status_code}: {text}"
                if code == 200:
                    return self._read(text)
                if code in FATAL:
                    raise self._error("refuses requests")
                if code < 500 and code not in TEMPORARY:
                    return None
                wait = _seconds(response.headers.get("Retry-After", "0"))
                if wait > MAX_RETRY_AFTER:
                    raise self._error(f"asks to wait {wait:,.0f} s")
                self.not_before = max(self.not_before, time.monotonic() + wait)  # for all workers
            except (self.http.HTTPError, TimeoutError) as error:
                self.failure = f"{type(error).__name__} {error}"
                if isinstance(error, self.http.ConnectError) and not self.reached:
                    raise self._error("cannot be reached") from error
            except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
                self.failure = f"no answer of a chat API, {self.failure}"
            await asyncio.sleep(min(MAX_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1))
        return None

    def _read(self, text: str) -> tuple[list[Answer], int, int]:
        """Read the answers of a response, and the tokens of the prompt and of the answers."""
        content, answers = json.loads(text), list[Answer]()
        for choice in content["choices"]:
            message, end = choice["message"], str(choice.get("finish_reason") or "")
            answer = THOUGHTS.sub("", message.get("content") or "").strip()
            answers.append((answer, "refusal" if message.get("refusal") else end))
        if not answers:
            raise ValueError("no answer")
        if not (usage := content.get("usage") or {}) and self.teacher.budget:
            raise self._error("does not say what an answer costs, which teacher.budget needs")
        sent, received = (int(usage.get(f"{kind}_tokens") or 0) for kind in ("prompt", "completion"))
        return answers, sent, received

    def _error(self, what: str) -> UserError:
        reason = " ".join(self.failure.split())[:SHOWN_CHARACTERS]
        return UserError(f"{self.teacher.url} {what} ({reason}): run the same command again, which asks for the rest")


def _seconds(retry_after: str) -> float:
    """Return the seconds that a server asks to wait, by their number or by a date."""
    with suppress(ValueError):
        return float(retry_after)
    return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
