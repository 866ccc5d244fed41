"""The options of files that are applied. Text only: imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.cli.options import option
from keelman.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """Options for the files of manifests and their treatment."""

    paths: list[str] | None = option(
        "-f --file", "PATH", "File, folder or - for the standard input, of YAML, JSON or .properties; may be repeated."
    )
    plan: bool = option("--plan", None, "Of files: only show the changes; exit code 2 if there are any.", default=False)
    prune: bool = option(
        "--prune", None, "Of files: remove resources with the labels of -l that no file has.", default=False
    )
    selector: list[str] | None = option(
        "-l --selector", "SELECTOR", "Of files: only resources with these labels: K=V, K!=V, K in (A,B), K."
    )
    cluster: str = option("--cluster", "WC", "Of files: worker cluster of connectors that name none.", default="")
    output: str = option("-o --output", "FORMAT", "Of a plan: text, json or yaml.", default="text")

    def check_none(self) -> None:
        """Raises InvalidArgument for an option that is only for files, where there are none."""
        options = {"--plan": self.plan, "--prune": self.prune, "-l": self.selector, "--cluster": self.cluster}
        for flag in filter(options.get, options):
            raise InvalidArgument(f"{flag}: only together with -f")
