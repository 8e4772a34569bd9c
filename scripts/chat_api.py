"""Offer the models of `nmt serve` as a chat API like OpenAI's: .venv/bin/python scripts/chat_api.py PORT SERVER_URL.

The last line of what the user says is translated, so that any of your models can be the teacher of another one.
"""

import sys

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


def main() -> None:
    """Answer until the process is stopped."""
    port, server = sys.argv[1:]
    client = httpx.AsyncClient(base_url=server, timeout=None, limits=httpx.Limits(max_connections=None))

    async def answer(request: Request) -> Response:
        prompt = (await request.json())["messages"][-1]["content"]
        found = await client.post("/v1/translate", json={"text": prompt.rpartition("\n")[2]})
        if not found.is_success:
            again = {name: value for name, value in found.headers.items() if name.lower() == "retry-after"}
            return JSONResponse(found.json(), found.status_code, again)
        text = found.json()["translations"][0]["text"]
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        return JSONResponse({"object": "chat.completion", "choices": [choice], "usage": usage})

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
