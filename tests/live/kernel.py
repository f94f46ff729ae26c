"""A real kernel, spoken to as a notebook does: code to run, and messages of widgets. An error in it fails the test."""

from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

WAIT = 120  # seconds


@dataclass
class Kernel:
    client: BlockingKernelClient
    stop: Any
    comms: dict[str, dict] = field(default_factory=dict)  # state of each widget model, by its id

    @classmethod
    def start(cls) -> "Kernel":
        manager, client = start_new_kernel(startup_timeout=WAIT, kernel_name="python3")
        return cls(client, lambda: (client.stop_channels(), manager.shutdown_kernel(now=True)))

    def run(self, code: str) -> dict[str, Any]:
        """The last result or stream of a cell, by MIME type."""
        shown: dict[str, Any] = {}
        for kind, content in self._heard(self.client.execute(code)):
            if kind in ("execute_result", "display_data"):
                shown = content["data"]
            elif kind == "stream":
                shown = {"text/plain": content["text"].strip()}
        return shown

    def tell(self, comm: str, data: dict) -> list[dict]:
        """Send a widget's message to the kernel; the custom messages that come back."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)
        heard = [content["data"] for kind, content in self._heard(message["msg_id"]) if kind == "comm_msg"]
        return [data["content"] for data in heard if data["method"] == "custom"]

    def _heard(self, request: str):
        while True:
            message = self.client.get_iopub_msg(timeout=WAIT)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            assert kind != "error", "\n".join(content["traceback"])
            if kind == "comm_open":
                self.comms[content["comm_id"]] = content["data"]["state"]
            yield kind, content
            if kind == "status" and content["execution_state"] == "idle":
                return
