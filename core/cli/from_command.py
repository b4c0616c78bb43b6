"""``scenario from-command``: the table that the command which starts a server stands for."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="from-command", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True)
@click.option("--gpu", help="The GPU, which no command says.")
@click.option("--batch", type=float, help="Sequences decoded together.")
@click.option("--context", type=float, help="Mean length of a sequence while it decodes, in tokens.")
@click.option("-o", "--output", metavar="FILE", help="Write the table to this file instead of printing it.")
def from_command(command: tuple[str, ...], gpu: str | None, batch: float | None, context: float | None, output: str | None) -> None:
    """Write the table row that COMMAND stands for: vllm serve, sglang.launch_server, trtllm-serve or llama-server, in quotes."""
    import shlex

    from scenario.catalogs import catalog
    from scenario.cli.options import wrote
    from scenario.common import emit, files
    from scenario.evidence import served

    found = served.read(command[0] if len(command) == 1 else shlex.join(command), catalog.builtin())
    row = found.row
    given = {"gpu": gpu, "batch": batch, "context": context}
    row |= {name: value for name, value in given.items() if value is not None}
    lines = [f"# {note}" for note in found.notes]
    missing = [name for name in given if name not in row]
    if missing:
        lines.append(f"# state {', '.join(missing)}: no command says them")
    lines += ["version: 1", "time_model: estimate", "rows:"]
    body = [line for name, value in row.items() for line in emit.entry(name, value, 4)]
    text = "\n".join([*lines, "  - " + body[0].lstrip(), *body[1:]]) + "\n"
    if not output:
        click.echo(text, nl=False)
        return
    files.refuse(Path(output))
    wrote(output, files.replace_text(Path(output), text), False)
