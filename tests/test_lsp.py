"""The language server, spoken to as an editor does: a process, and messages over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import REPOSITORY, Project

pytest.importorskip("pygls")

MODEL = """import torch
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        print('字', x)
"""


class Editor:
    """The other side of the protocol."""

    def __init__(self, project: Project) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tsdyn_lint", "lsp"],
            cwd=project.folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        self.uri = (project.folder / "model.py").as_uri()
        self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.notify("initialized", {})

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._id:
                assert "error" not in message, message
                return message["result"]

    def diagnostics(self, version: int | None) -> list[dict[str, Any]]:
        """The next diagnostics published for that version of the document."""
        while True:
            message = self._receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                if message["params"].get("version") == version:
                    return list(message["params"]["diagnostics"])

    def open(self, text: str) -> list[dict[str, Any]]:
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(1)

    def close(self) -> None:
        self.request("shutdown", {})
        self.notify("exit", {})
        assert self._process.wait(20) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message


@pytest.fixture
def editor(project: Project) -> Iterator[Editor]:
    editor = Editor(project)
    yield editor
    editor.kill()


def place(row: int, column: int) -> dict[str, Any]:
    return {"line": row, "character": column}


def test_diagnostics_follow_the_buffer(editor: Editor) -> None:
    (found,) = editor.open(MODEL)
    assert (found["code"], found["source"], found["severity"]) == ("TSD301", "tsdyn-lint", 2)
    assert found["range"] == {"start": place(6, 8), "end": place(6, 21)}
    assert "dynamo" in found["data"]["engines"]
    change = {"text": MODEL.replace("print('字', x)", "return x")}
    document = {"uri": editor.uri, "version": 2}
    editor.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
    assert editor.diagnostics(2) == []
    editor.notify("textDocument/didClose", {"textDocument": {"uri": editor.uri}})
    assert editor.diagnostics(None) == []
    editor.close()


def test_a_finding_can_be_ignored_and_explained(editor: Editor) -> None:
    editor.open(MODEL)
    where = {"textDocument": {"uri": editor.uri}, "range": {"start": place(6, 10), "end": place(6, 10)}}
    actions = editor.request("textDocument/codeAction", {**where, "context": {"diagnostics": []}})
    ignore = next(action for action in actions if action["title"] == "TSD301: ignore on this line")
    (edit,) = ignore["edit"]["changes"][editor.uri]
    assert edit["newText"] == "        print('字', x)  # tsdyn: ignore[TSD301]"
    assert edit["range"] == {"start": place(6, 0), "end": place(6, 21)}
    page = editor.request("textDocument/hover", {"textDocument": {"uri": editor.uri}, "position": place(6, 10)})
    assert "## Why it breaks" in page["contents"]["value"]
    assert editor.request("textDocument/hover", {"textDocument": {"uri": editor.uri}, "position": place(0, 0)}) is None


def test_an_unused_suppression_has_a_fix_that_is_preferred(editor: Editor) -> None:
    (found,) = editor.open("x = '𝄞'  # tsdyn: ignore[TSD000]\n")
    assert found["code"] == "TSD001"
    where = {"textDocument": {"uri": editor.uri}, "range": found["range"]}
    actions = editor.request("textDocument/codeAction", {**where, "context": {"diagnostics": []}})
    fix = next(action for action in actions if action["isPreferred"])
    (edit,) = fix["edit"]["changes"][editor.uri]
    assert edit == {"range": {"start": place(0, 8), "end": place(0, 33)}, "newText": ""}


def test_the_configuration_near_the_file_holds_and_a_broken_one_is_told(project: Project, editor: Editor) -> None:
    project.write("tsdyn-lint.toml", 'ignore = ["TSD301"]\n')
    assert editor.open(MODEL) == []
    project.write("tsdyn-lint.toml", "bogus = 1\n")
    editor.notify("textDocument/didSave", {"textDocument": {"uri": editor.uri}})
    while (message := editor._receive()).get("method") != "window/showMessage":
        pass
    assert "unknown key `bogus`" in message["params"]["message"]


def test_text_that_does_not_parse_is_a_diagnostic(editor: Editor) -> None:
    assert [found["code"] for found in editor.open("import torch\ndef f(:\n")] == ["TSD000"]
