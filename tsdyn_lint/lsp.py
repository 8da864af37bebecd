"""An editor's server: diagnostics while typing, fixes and suppressions as code actions, rule pages on hover.

The only module that imports pygls, which the extra `lsp` brings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from tsdyn_lint import __version__
from tsdyn_lint.config import Configs
from tsdyn_lint.configfile import ConfigError, Options
from tsdyn_lint.findings import Finding, Location, Severity
from tsdyn_lint.report.run import gb_url
from tsdyn_lint.session import Request, run
from tsdyn_lint.source import make_source
from tsdyn_lint.suppress import with_suppression

_DEBOUNCE = 0.3
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """Holds the findings that each open document was last shown."""

    def __init__(self) -> None:
        super().__init__("tsdyn-lint", __version__)
        self.found: dict[str, list[Finding]] = {}

    async def refresh(self, uri: str, wait: float = 0.0) -> None:
        """Lints a document and publishes what is found, unless it changes while this waits or works."""
        document = self.workspace.get_text_document(uri)
        version = document.version
        await asyncio.sleep(wait)
        if uri not in self.workspace.text_documents or document.version != version:
            return
        try:
            findings = await asyncio.to_thread(lint_text, Path(document.path), document.source)
        except ConfigError as problem:
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, str(problem)))
            findings = []
        if uri in self.workspace.text_documents and document.version == version:
            self.found[uri] = findings
            diagnostics = [_diagnostic(finding, document) for finding in findings]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def at(self, uri: str, place: types.Range) -> Iterator[tuple[Finding, types.Range]]:
        """The findings of a document that a range touches, each with its own range."""
        document = self.workspace.get_text_document(uri)
        for finding in self.found.get(uri, ()):
            own = _range(finding.start, finding.end, document)
            if own.start <= place.end and place.start <= own.end:
                yield finding, own


def lint_text(path: Path, text: str) -> list[Finding]:
    """Findings of a buffer under the configuration near its file; raises ConfigError."""
    request = Request(Configs(Options()), stdin=text.encode(), stdin_path=path, jobs=1, use_cache=True)
    return run(request).findings


def make_server() -> Server:
    """A server with its features, not yet started."""
    server = Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(server: Server, params: types.DidOpenTextDocumentParams) -> None:
        await server.refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(server: Server, params: types.DidChangeTextDocumentParams) -> None:
        await server.refresh(params.text_document.uri, _DEBOUNCE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(server: Server, params: types.DidSaveTextDocumentParams) -> None:
        await server.refresh(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(server: Server, params: types.DidCloseTextDocumentParams) -> None:
        server.found.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.workspace.get_text_document(params.text_document.uri)
        return list(_actions(server.at(document.uri, params.range), document))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(server: Server, params: types.HoverParams) -> types.Hover | None:
        place = types.Range(params.position, params.position)
        for finding, own in server.at(params.text_document.uri, place):
            return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, _page(finding)), own)
        return None

    return server


def _diagnostic(finding: Finding, document: TextDocument) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(Path(one.filename).as_uri(), _plain_range(one.start, one.end)), one.message
        )
        for one in finding.related
    ]
    return types.Diagnostic(
        _range(finding.start, finding.end, document),
        finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(gb_url(finding.gb[0])) if finding.gb else None,
        source="tsdyn-lint",
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == "TSD001" else None,
        related_information=related,
        data={"engines": [engine.value for engine in finding.engines], "confidence": finding.confidence.value},
    )


def _actions(found: Iterable[tuple[Finding, types.Range]], document: TextDocument) -> Iterator[types.CodeAction]:
    for finding, _ in found:
        diagnostic = _diagnostic(finding, document)
        if finding.fix and finding.fix.applicability != "display":
            edits = [types.TextEdit(_range(e.start, e.end, document), e.content) for e in finding.fix.edits]
            yield _action(
                f"{finding.code}: {finding.fix.message}", edits, diagnostic, document, finding.fix.applicability
            )
        source = make_source(Path(document.path), document.source.encode())
        line = with_suppression(source, finding)
        if line is not None:
            start = Location(finding.start.row, 1)
            end = Location(finding.start.row, len(source.line(finding.start.row)) + 1)
            edit = types.TextEdit(_range(start, end, document), line)
            yield _action(f"{finding.code}: ignore on this line", [edit], diagnostic, document, "unsafe")


def _action(
    title: str, edits: list[types.TextEdit], diagnostic: types.Diagnostic, document: TextDocument, applicability: str
) -> types.CodeAction:
    return types.CodeAction(
        title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=applicability == "safe",
        edit=types.WorkspaceEdit(changes={document.uri: edits}),
    )


def _page(finding: Finding) -> str:
    from tsdyn_lint.rulebook import load_rules

    rule = load_rules().get(finding.code)
    return f"**{finding.code} {finding.name}**\n\n{finding.message}\n\n{rule.text.strip() if rule else ''}"


def _range(start: Location, end: Location, document: TextDocument) -> types.Range:
    """A range in the units that the editor counts columns in."""
    return document.position_codec.range_to_client_units(document.lines, _plain_range(start, end))


def _plain_range(start: Location, end: Location) -> types.Range:
    first = types.Position(start.row - 1, start.column - 1)
    return types.Range(first, types.Position(end.row - 1, end.column - 1))
