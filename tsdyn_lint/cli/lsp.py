"""`tsdyn-lint lsp`: a language server on standard input and output."""

from __future__ import annotations

import gc

import click


@click.command("lsp", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> int:
    """Serve an editor over standard input and output."""
    try:
        from tsdyn_lint.lsp import make_server
    except ImportError:
        raise click.UsageError("lsp needs pygls: pip install 'tsdyn-lint[lsp]'") from None
    gc.enable()
    make_server().start_io()
    return 0
