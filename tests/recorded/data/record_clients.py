"""Records the answers of Java's Kafka clients and Connect's override policies; to run after an update of Kafka.

`python -m recorded.data.record_clients` writes clients.json beside it; it needs a JDK and fetches Connect's jars.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find

HERE = Path(__file__).resolve().parent
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
JAAS = [
    f'{PLAIN} required username="alice" password="secret";',
    f"{PLAIN} required username=alice password=secret;",
    f'{PLAIN} required\n  username=\'al"ice\'\n  password="a\\"b\\\\c;d=e f" ;',
    f'{PLAIN} SUFFICIENT username="a\\tb\\u0041" password="\\101\\n";',
    f"  {PLAIN}\trequired username = \"x\" password = ''; ",
    f'{PLAIN} required // a comment\n username="x" /* another */ password="y";',
    f'{PLAIN} required # a third\n username="x" password="y";',
    f'{OAUTH} required unsecuredLoginStringClaim_sub="thePrincipalName" unsecuredLoginListClaim_scope="| s1 | s2";',
    f'{OAUTH} required clientId="foo" clientSecret="b a r" scope="baz" extension_logicalCluster="lkc-1";',
    f'{OAUTH} required clientId="foo" port=12 ratio=1.5;',
    f"{OAUTH} optional;",
    f'{PLAIN} required username="alice" password="secret"',
    f'{PLAIN} needed username="alice";',
    f'{PLAIN} required username="alice" password;',
    f'{PLAIN} required username="a" password="b"; {PLAIN} required username="c" password="d";',
    f'{PLAIN} required username="never closed;',
    f"{PLAIN} required -x=1;",
    f"{PLAIN};",
    "",
    ";",
    'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://evil";',
    'com.sun.security.auth.module.LdapLoginModule required userProvider="ldap://evil";',
    'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/x" principal="a@B";',
]


async def run_java(program: str, answer: object) -> str:
    """The output of a Java program of this folder, with Connect's jars on its class path; `answer` is its input."""
    jars = await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT))
    utf8 = ["-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8"]
    command = [str(find().program), *utf8, "-cp", ":".join(map(str, jars)), str(HERE / program)]
    done = subprocess.run(
        command, input=json.dumps(answer), stdout=subprocess.PIPE, encoding="utf-8", timeout=300, check=True
    )
    return done.stdout


def main() -> None:
    """Writes the record: one key, policy or text a line."""
    facts = json.loads(asyncio.run(run_java("ClientFacts.java", JAAS)))
    lines = ["{"]
    for name in ("keys", "policies"):
        listed = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in facts[name].items()]
        lines += [f' "{name}": {{', ",\n".join(listed), " },"]
    lines += [' "jaas": [', ",\n".join(f"  {json.dumps(item)}" for item in facts["jaas"]), " ]", "}"]
    (HERE / "clients.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
