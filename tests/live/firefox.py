"""The Firefox of this machine, told what to do by WebDriver BiDi over its own port: there is no driver to install."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
# Nothing but this machine can be reached: all else goes to a port where nobody listens.
PREFERENCES = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1",
}
SERVING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
WAIT = 120  # seconds


class Page:
    """One tab. `trouble` is what the console says is wrong."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket, self.count, self.trouble, self.context = socket, 0, [], ""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        await self.socket.write_message(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            said = json.loads(await self.socket.read_message())
            if said.get("method") == "log.entryAdded" and said["params"]["level"] in ("error", "warn"):
                self.trouble.append(said["params"]["text"])
            if said.get("id") == self.count:
                assert said["type"] == "success", said
                return said["result"]

    async def open(self, address: str) -> None:
        await self.call("session.new", capabilities={})
        await self.call("session.subscribe", events=["log.entryAdded"])
        self.context = (await self.call("browsingContext.getTree"))["contexts"][0]["context"]
        await self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def ask(self, expression: str) -> Any:
        """The value of JavaScript whose value is text, a number or a truth value."""
        target = {"context": self.context}
        said = await self.call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert said["type"] == "success", said
        return said["result"].get("value")

    async def wait(self, expression: str) -> None:
        async with asyncio.timeout(WAIT):
            while not await self.ask(expression):
                await asyncio.sleep(0.1)

    async def press(self, key: str) -> None:
        """A key for what has the focus."""
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        await self.call("input.performActions", context=self.context, actions=[keyboard])


def in_firefox(profile: Path, act: Callable[[Page], Awaitable[Any]]) -> Any:
    """Let `act` use a page of a new Firefox; in a thread of its own, since Playwright has the loop of this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _act(profile, act)).result()


async def _act(profile: Path, act: Callable[[Page], Awaitable[Any]]) -> Any:
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    command = [str(FIREFOX), "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    firefox = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        address = next(found[1] for line in firefox.stderr if (found := SERVING.search(line)))
        socket = await websocket_connect(f"{address}/session", max_message_size=100_000_000)
        return await act(Page(socket))
    finally:
        firefox.terminate()
        firefox.communicate()
