"""The description of a plugin's file, read without running any of its code."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from keelman.model.plugins.plugin import PluginClass, PluginKind
from keelman.workers.plugins.archive import ArchiveRefused, Bounds
from keelman.workers.plugins.inspection import inspect, inspect_folder
from support.plugins import jar_files as java
from support.plugins.plugin_wheel import FULL, wheel

WEATHER = java.class_bytes("com/acme/WeatherSource", java.SOURCE)
SERVICE = "org.apache.kafka.connect.source.SourceConnector"


def jar(folder: Path, *classes: bytes, name: str = "acme-1.2.jar", **files: str) -> Path:
    path = folder / name
    path.write_bytes(java.jar_bytes(classes, {k.replace("__", "/"): v for k, v in files.items()}))
    return path


def types(path: Path) -> list[tuple[str, str]]:
    return [(plugin_class.class_name, plugin_class.type) for plugin_class in inspect(path).classes]


def test_classes_without_service_files_are_found_by_what_they_extend(tmp_path):
    path = jar(
        tmp_path,
        WEATHER,
        java.class_bytes("com/acme/Base", java.SINK, flags=java.ABSTRACT),
        java.class_bytes("com/acme/Sink", "com/acme/Middle"),
        java.class_bytes("com/acme/Middle", "com/acme/Base", flags=java.ABSTRACT),
        java.class_bytes("com/acme/Mask$Value", "com/acme/Mask"),
        java.class_bytes("com/acme/Mask", interfaces=[java.TRANSFORMATION], flags=java.ABSTRACT),
        java.class_bytes("com/acme/IsBlue", interfaces=["java/io/Closeable", java.PREDICATE]),
        java.class_bytes("com/acme/Both", interfaces=[java.CONVERTER, java.HEADER_CONVERTER]),
        java.class_bytes("com/acme/Json", "org/apache/kafka/connect/json/JsonConverter"),
        java.class_bytes("com/acme/Hidden", java.SOURCE, flags=0x20),
        java.class_bytes("com/acme/NeedsArguments", java.SOURCE, constructor=False),
        java.class_bytes("com/acme/Plain"),
    )
    assert types(path) == [
        ("com.acme.Both", "converter"),
        ("com.acme.Both", "header_converter"),
        ("com.acme.IsBlue", "predicate"),
        ("com.acme.Json", "converter"),
        ("com.acme.Json", "header_converter"),
        ("com.acme.Mask$Value", "transformation"),
        ("com.acme.Sink", "sink"),
        ("com.acme.WeatherSource", "source"),
    ]
    assert inspect(path).problems == ()


def test_streams_and_partitioners_are_told_though_their_base_is_elsewhere(tmp_path):
    path = jar(
        tmp_path,
        java.class_bytes("com/acme/Evenly", interfaces=["org/apache/kafka/clients/producer/Partitioner"]),
        java.class_bytes("com/acme/ByCell", "oharastream/ohara/kafka/RowPartitioner"),
        java.class_bytes("com/acme/Sum", "com/acme/Any"),
        java.class_bytes("com/acme/Any", "oharastream/ohara/stream/Stream", flags=java.ABSTRACT),
    )
    assert types(path) == [
        ("com.acme.ByCell", "partitioner"), ("com.acme.Evenly", "partitioner"), ("com.acme.Sum", "stream"),
    ]  # fmt: skip
    assert inspect(path).problems == ()


def test_a_circle_of_classes_ends(tmp_path):
    assert types(jar(tmp_path, java.class_bytes("a/A", "a/B"), java.class_bytes("a/B", "a/A"))) == []


def test_classes_extend_those_of_other_jars(tmp_path):
    path = tmp_path / "acme-2.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("acme/a.jar", java.jar_bytes([java.class_bytes("a/Sink", "b/Base")]))
        archive.writestr("acme/b.jar", java.jar_bytes([java.class_bytes("b/Base", java.SINK, flags=java.ABSTRACT)]))
        archive.writestr("acme/inner.zip", b"PK")
    inspection = inspect(path)
    assert (inspection.kind, inspection.name, inspection.version) == (PluginKind.ZIP, "acme", "2.0")
    assert inspection.classes == (PluginClass("a.Sink", "sink", "", "java", "acme/a.jar"),)
    assert inspection.problems == ("acme/inner.zip: an archive in the archive, which is not looked into",)


def test_versions_come_from_manifest_then_maven_then_the_name(tmp_path):
    manifest = (
        "Manifest-Version: 1.0\r\nImplementation-Version: 3.1\r\n .4\r\n\r\nName: x\r\nImplementation-Version: 9\r\n"
    )
    pom = {"META-INF__maven__com.acme__acme__pom.properties": "#x\nversion=2.5\n"}
    assert inspect(jar(tmp_path, WEATHER, **{"META-INF__MANIFEST.MF": manifest}, **pom)).classes[0].version == "3.1.4"
    assert inspect(jar(tmp_path, WEATHER, **pom)).classes[0].version == "2.5"
    assert inspect(jar(tmp_path, WEATHER)).classes[0].version == "1.2"


def test_a_newer_java_is_a_problem_that_is_told(tmp_path):
    newer = java.class_bytes("com/acme/New", java.SOURCE, java=21)
    other = {"META-INF__versions__21__com__acme__Other.class": "x"}
    path = jar(
        tmp_path,
        WEATHER,
        newer,
        **{"META-INF__services__org.apache.kafka.connect.source.SourceConnector": "com.acme.New"},
        **other,
    )
    inspection = inspect(path, java=17)
    assert [plugin_class.class_name for plugin_class in inspection.classes] == ["com.acme.WeatherSource"]
    assert inspection.problems == (
        "acme-1.2.jar: 1 class needs Java 21 (com.acme.New); workers run Java 17",
        "acme-1.2.jar: its service file names com.acme.New, which needs Java 21; workers run Java 17",
    )
    assert inspect(path, java=21).problems == ()


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("com.acme.Gone", "which is in none of the jars"),
        ("com.acme.Plain", "which is no source"),
        ("com.acme.Bare", "which is no source"),
        ("com.acme.WeatherSource # the one\n\n#com.acme.Gone", ""),
        ("a b", "which is no name of a class"),
    ],
)
def test_service_files_that_name_what_is_not_there(tmp_path, named, reason):
    sink = java.class_bytes("com/acme/Plain", java.SINK)
    bare = java.class_bytes("com/acme/Bare")
    path = jar(
        tmp_path, WEATHER, sink, bare, **{"META-INF__services__org.apache.kafka.connect.source.SourceConnector": named}
    )
    assert inspect(path).problems == ((f"acme-1.2.jar: its service file names {named}, {reason}",) if reason else ())


def test_a_class_whose_super_class_is_elsewhere_is_told_with_what_it_needs(tmp_path):
    apart = java.class_bytes("com/acme/Apart", "com/acme/Base")
    base = java.class_bytes("com/acme/Base", "com/shared/SourceBase", flags=java.ABSTRACT)
    inspection = inspect(jar(tmp_path, apart, base, **{f"META-INF__services__{SERVICE}": "com.acme.Apart"}))
    assert inspection.classes == (PluginClass("com.acme.Apart", "source", "1.2", "java", "acme-1.2.jar"),)
    assert inspection.problems == (
        "acme-1.2.jar: its service file names com.acme.Apart, which extends com.shared.SourceBase, which is in none of "
        "the jars",
    )


def test_classes_that_extend_connects_own_ones(tmp_path):
    path = jar(
        tmp_path,
        java.class_bytes("a/Mask", "org/apache/kafka/connect/transforms/MaskField$Value"),
        java.class_bytes("a/Is", "org/apache/kafka/connect/transforms/predicates/TopicNameMatches"),
        java.class_bytes("a/Long", "org/apache/kafka/connect/converters/LongConverter"),
        java.class_bytes("a/Util", "org/apache/kafka/connect/transforms/util/SimpleConfig"),
    )
    assert types(path) == [
        ("a.Is", "predicate"), ("a.Long", "converter"), ("a.Long", "header_converter"), ("a.Mask", "transformation"),
    ]  # fmt: skip


def test_classes_that_extend_oharas_own_ones_are_connectors_too(tmp_path):
    room = "oharastream/ohara/kafka/connector"
    path = jar(
        tmp_path,
        java.class_bytes("a/Rows", f"{room}/RowSourceConnector"),
        java.class_bytes("a/CsvOut", f"{room}/csv/CsvSinkConnector"),
        java.class_bytes(f"{room}/RowSourceConnector", java.SOURCE, flags=java.ABSTRACT),
    )
    assert types(path) == [("a.CsvOut", "sink"), ("a.Rows", "source")]


def test_class_files_that_are_none(tmp_path):
    bad = {f"com__acme__Bad{n}.class": WEATHER[: n * 9].decode("latin1") for n in range(5)}
    inspection = inspect(jar(tmp_path, WEATHER, **bad))
    assert [plugin_class.class_name for plugin_class in inspection.classes] == ["com.acme.WeatherSource"]
    assert (
        "acme-1.2.jar: 5 class files cannot be read, e.g. com/acme/Bad0.class (not a class file"
        in inspection.problems[0]
    )


def test_what_the_worker_has_itself_is_not_the_plugins(tmp_path):
    api = java.class_bytes("org/apache/kafka/connect/tools/MockSource", java.SOURCE)
    mask = java.class_bytes("org/apache/kafka/connect/transforms/MaskField", interfaces=[java.TRANSFORMATION])
    assert types(jar(tmp_path, api, mask)) == [("org.apache.kafka.connect.transforms.MaskField", "transformation")]


def test_a_wheel_is_told_from_its_metadata(tmp_path):
    path = wheel(tmp_path)
    inspection = inspect(path)
    assert (inspection.kind, inspection.name, inspection.version) == (PluginKind.WHEEL, "acme-weather", "1.4.0")
    assert inspection.classes == (PluginClass(FULL, "source", "1.4.0", "python", path.name),)
    assert inspection.problems == ()


def test_the_way_of_a_wheels_connector_stands_in_its_class(tmp_path):
    points = "[keelman.connectors]\ncom.acme.Out = acme_weather.out:Out\nx = acme_weather.none:X\ny = wrong\n"
    module = "class In:\n    direction = Direction.SOURCE\n\nclass Out(Connector):\n    version = '7'\n"
    module += "    direction: Direction = plugin.Direction.SINK\n"
    inspection = inspect(wheel(tmp_path, entry_points=points, more={"acme_weather/out.py": module}))
    assert [(c.class_name, c.type, c.version) for c in inspection.classes] == [("com.acme.Out", "sink", "7")]
    assert [p.partition(": ")[2] for p in inspection.problems] == [
        "entry point x = acme_weather.none:X: no module acme_weather.none in it",
        "entry point y = wrong: expected module:Class",
    ]


def test_a_tar_with_jars_and_wheels(tmp_path):
    wheel_file = wheel(tmp_path / "made")
    path = tmp_path / "acme-3.7.0.Final-plugin.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (
            ("acme/a.jar", java.jar_bytes([WEATHER])),
            (f"acme/{wheel_file.name}", wheel_file.read_bytes()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    inspection = inspect(path)
    assert (inspection.kind, inspection.name, inspection.version) == (PluginKind.TAR_GZ, "acme", "3.7.0.Final")
    assert [(c.class_name, c.language) for c in inspection.classes] == [
        ("com.acme.WeatherSource", "java"), (FULL, "python"),
    ]  # fmt: skip


def test_a_bad_jar_inside_is_a_problem_and_a_bomb_refuses_the_file(tmp_path):
    path = tmp_path / "acme.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good.jar", java.jar_bytes([WEATHER]))
        archive.writestr("bad.jar", java.jar_bytes((), {"../evil.class": "x"}))
        archive.writestr("worse.jar", "no zip")
    inspection = inspect(path)
    assert [plugin_class.path for plugin_class in inspection.classes] == ["good.jar"]
    assert inspection.problems[0].startswith("bad.jar: plugin file refused (parent-path): '../evil.class'")
    assert inspection.problems[1].startswith("worse.jar: plugin file refused (broken)")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bomb.jar", java.jar_bytes((), {"zeros": b"\0" * (1 << 20)}))
    with pytest.raises(ArchiveRefused) as caught:
        inspect(path, bounds=Bounds(ratio=100, ratio_from_bytes=1 << 16))
    assert caught.value.metadata == {"rule": "ratio", "entry": "bomb.jar"}


def test_what_is_no_archive_or_has_nothing(tmp_path):
    (tmp_path / "x.jar").write_text("hello")
    with pytest.raises(ArchiveRefused, match="is no zip, jar, wheel"):
        inspect(tmp_path / "x.jar")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
        archive.writestr("README", "hello")
    assert inspect(tmp_path / "y.zip").problems == ("has neither jars nor wheels",)


def test_a_folder_of_jars(tmp_path):
    (tmp_path / "lib").mkdir()
    jar(tmp_path / "lib", WEATHER)
    (tmp_path / "bad.jar").write_text("hello")
    actual_inspect_folder = inspect_folder(tmp_path)
    assert actual_inspect_folder.kind is None
    assert actual_inspect_folder.classes == (
        PluginClass("com.acme.WeatherSource", "source", "1.2", "java", "lib/acme-1.2.jar"),
    )
    assert actual_inspect_folder.problems[0].startswith("bad.jar: plugin file refused")


RUNTIME = "org/apache/kafka/connect/runtime"
SINK_CONTEXT = f"{RUNTIME}/WorkerSinkTaskContext".replace("/", ".")


def test_what_of_connects_inside_a_connector_reaches(tmp_path):
    path = jar(
        tmp_path,
        java.class_bytes("a/Deep", java.SINK, uses=["a/Task"]),
        java.class_bytes("a/Task", uses=["[La/Helper;", f"{RUNTIME}/ConnectorConfig"]),
        java.class_bytes("a/Helper", uses=["a/Task", f"{RUNTIME}/Worker", f"{RUNTIME}/WorkerSinkTask"]),
        java.class_bytes("a/Commits", java.SINK, uses=["a/Consumers"]),
        java.class_bytes("a/Consumers", texts=[SINK_CONTEXT]),
        java.class_bytes("a/Alone", java.SOURCE, uses=["org/apache/kafka/connect/source/SourceTask"]),
        java.class_bytes(f"{RUNTIME}/Worker", uses=[f"{RUNTIME}/Herder"]),
    )
    inspection = inspect(path)
    assert [plugin_class.class_name for plugin_class in inspection.classes] == ["a.Alone", "a.Commits", "a.Deep"]
    inner = RUNTIME.replace("/", ".")
    assert inspection.inner == {"a.Deep": [f"{inner}.Worker", f"{inner}.WorkerSinkTask"], "a.Commits": [SINK_CONTEXT]}
    assert inspection.refused == {
        "a.Deep": f"a.Deep cannot run here: a.Helper uses {inner}.Worker and 1 more, which is Kafka Connect's own "
        "inside; a worker cluster of the engine kafka-connect runs it"
    }
    assert inspection.problems == ()


def test_jars_of_a_folder_and_of_an_archive_are_followed_together(tmp_path):
    (tmp_path / "acme").mkdir()
    jar(tmp_path / "acme", java.class_bytes("a/Sink", java.SINK, uses=["b/Inner"]), name="a.jar")
    jar(tmp_path / "acme", java.class_bytes("b/Inner", uses=[f"{RUNTIME}/Herder"]), name="b.jar")
    path = tmp_path / "acme.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.jar", "b.jar"):
            archive.write(tmp_path / "acme" / name, name)
    for inspection in (inspect(path), inspect_folder(tmp_path / "acme")):
        assert "b.Inner uses org.apache.kafka.connect.runtime.Herder, which" in inspection.refused["a.Sink"]


def test_what_is_told_fits_into_an_event(tmp_path):
    many = [java.class_bytes(f"com/acme/{'x' * 200}{n}", java.SOURCE) for n in range(2000)]
    wrong = "\n".join(f"com.acme.Gone{n}" for n in range(200))
    inspection = inspect(jar(tmp_path, *many, **{f"META-INF__services__{SERVICE}": wrong}))
    assert 1000 < len(inspection.classes) < 2000
    assert len(inspection.problems) == 101
    assert inspection.problems[-1] == "101 more problems"
    assert sum(len(str(text)) for text in (*inspection.classes, *inspection.problems)) < 700_000
