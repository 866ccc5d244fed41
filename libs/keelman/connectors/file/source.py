"""FileStreamSource: the lines of a file as records, with byte positions as offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from keelman.connect.config.definition import REQUIRED, ConfigDef, ConfigKey, Importance, Type, non_empty
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.plugin import Connector, Direction, Reader
from keelman.connect.records import Offset, Partition, SourceBatch
from keelman.connect.watches import FileWatch, Watch
from keelman.connectors.file.file_reader import FileReader
from keelman.connectors.file.followed_file import check_positions, checked_position, parse_mark


class FileStreamSource(Connector):
    """One task that follows one file. Without `file` Connect reads its own standard input; copying here happens in
    processes without one, so such a task finds its input empty, as Connect does when it runs as a service."""

    names = ("org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSourceConnector", "FileStreamSource")
    version = "4.3.0"
    direction = Direction.SOURCE
    runs_on = "node"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`file`, `topic`, `batch.size`."""
        return ConfigDef(
            ConfigKey("file", Type.STRING, None, Importance.HIGH, "Path of the file to read; empty input when absent."),
            ConfigKey("topic", Type.STRING, REQUIRED, Importance.HIGH, "Topic to write the lines to.", non_empty),
            ConfigKey(
                "batch.size",
                Type.INT,
                2000,
                Importance.LOW,
                "Most lines to read at a time; when it is not set, as many as there are in a block of 256 KiB.",
            ),
        )

    @classmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Always one task: a file has one order."""
        return [dict(config)]

    @classmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """With a file; standard input has no position to go back to."""
        return bool(config.get("file"))

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Positions of files by name, also of files that it read with an earlier configuration."""
        return check_positions(config, offsets)

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """Returns a watch on the file if its offset identifies it; the reader checks the file once it has changed."""
        path = config.get("file", "").strip()
        stored = offset({"filename": path})
        mark = parse_mark(stored, checked_position(stored))
        if not path or mark is None or (stored or {}).get("late"):
            return None
        return FileWatch(path, mark.position, mark.inode, mark.modified)

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """The reader, at the committed position. Raises ConnectError when that is no position."""
        parsed = cls.config_def().parse(config)
        if not parsed["file"]:
            return EmptyReader()
        most = parsed["batch.size"] if "batch.size" in config else None
        return FileReader(parsed["file"], parsed["topic"], offset({"filename": parsed["file"]}), most)


class EmptyReader(Reader):
    """Standard input where there is none."""

    def partitions(self) -> Sequence[Partition]:
        """None."""
        return ()

    def read(self) -> SourceBatch | None:
        """Never anything."""
        return None
