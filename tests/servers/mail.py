"""A real mail system: Postfix takes the mail (STARTTLS, TLS, AUTH), Dovecot keeps it and lets it be read by IMAP.

``python -m tests.servers.mail`` starts one and prints how to reach it. It needs root, as Postfix does.
"""

import email
import email.policy
import imaplib
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

import trustme

from tests.servers.running import HOST, apt, free_port, listens, process

DOMAIN = "mail.test"
USERS = ("alice", "bob")
SIZE = 300_000_000


@dataclass(frozen=True)
class MailServer:
    """``port``: submission, which wants STARTTLS and AUTH. ``tls_port``: the same with TLS from the start. Both want
    a login.

    The accounts are ``alice@mail.test`` and ``bob@mail.test``; ``password`` is that of both. ``ca_file`` signed the
    certificate of localhost.
    """

    port: int
    tls_port: int
    imap_port: int
    ca_file: str
    password: str = "FAKE-mailbox-password"

    def mailbox(self, user: str, subject: str) -> list[EmailMessage]:
        """The mails of a user with this text in the subject, parsed, the octets as Dovecot has them."""
        context = ssl.create_default_context(cafile=self.ca_file)
        with imaplib.IMAP4("localhost", self.imap_port) as box:
            box.starttls(context)
            box.login(f"{user}@{DOMAIN}", self.password)
            box.select()
            _, found = box.search(None, "SUBJECT", f'"{subject}"')
            return [_parsed(box.fetch(number, "(BODY.PEEK[])")[1][0][1]) for number in found[0].decode().split()]


def _parsed(octets: bytes) -> EmailMessage:
    message = email.message_from_bytes(octets, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


@contextmanager
def running() -> Iterator[MailServer]:
    """A fresh mail system. Its folder is its own: Postfix and Dovecot give up root, and cannot enter a private one."""
    apt("postfix", "dovecot-imapd", "dovecot-lmtpd")
    folder = Path(tempfile.mkdtemp(prefix="mail-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        server = MailServer(free_port(), free_port(), free_port(), str(folder / "ca.pem"))
        authority = trustme.CA()
        authority.cert_pem.write_to_path(server.ca_file)
        authority.issue_cert("localhost", HOST).private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
        dovecot, postfix = _write_dovecot(folder, server), _write_postfix(folder, server)
        with (
            process(dovecot, folder / "dovecot.log", lambda: listens(server.imap_port)),
            process(postfix, folder / "postfix.log", lambda: listens(server.port) and listens(server.tls_port)),
        ):
            try:
                yield server
            finally:  # its master process is in a session of its own
                subprocess.run([*postfix[:-1], "stop"], capture_output=True, check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_dovecot(folder: Path, server: MailServer) -> list[str]:
    boxes = folder / "boxes"
    boxes.mkdir()
    shutil.chown(boxes, "mail", "mail")
    (folder / "users").write_text("".join(f"{user}@{DOMAIN}:{{PLAIN}}{server.password}\n" for user in USERS))
    (folder / "dovecot.conf").write_text(f"""
base_dir = {folder}/run
log_path = /dev/stderr
listen = {HOST}
protocols = imap lmtp
ssl_cert = <{folder}/server.pem
ssl_key = <{folder}/server.pem
auth_mechanisms = plain login
auth_failure_delay = 0
first_valid_uid = 1
mail_location = maildir:{boxes}/%u
passdb {{
  driver = passwd-file
  args = {folder}/users
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={boxes}/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {server.imap_port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service auth {{
  unix_listener for-postfix {{
    mode = 0666
  }}
}}
service lmtp {{
  unix_listener deliver {{
    mode = 0666
  }}
}}
""")
    return ["dovecot", "-F", "-c", str(folder / "dovecot.conf")]


def _write_postfix(folder: Path, server: MailServer) -> list[str]:
    for name in ("config", "queue", "data"):
        (folder / name).mkdir()
    shutil.chown(folder / "data", "postfix")
    (folder / "known").write_text("".join(f"{user}@{DOMAIN} {user}\n" for user in USERS))
    (folder / "config" / "main.cf").write_text(f"""
compatibility_level = 3.6
myhostname = {DOMAIN}
mydestination =
mynetworks =
inet_interfaces = {HOST}
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = /dev/stdout
alias_maps =
alias_database =
virtual_mailbox_domains = {DOMAIN}
virtual_mailbox_maps = texthash:{folder}/known
virtual_transport = lmtp:unix:{folder}/run/deliver
default_transport = error:5.1.2 nothing leaves this machine
relay_transport = error:5.1.2 nothing leaves this machine
smtp_dns_support_level = disabled
message_size_limit = {SIZE}
virtual_mailbox_limit = 0
smtpd_tls_chain_files = {folder}/server.pem
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {folder}/run/for-postfix
smtpd_helo_required = yes
smtpd_error_sleep_time = 0
smtpd_client_restrictions = permit_sasl_authenticated, reject
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = reject_non_fqdn_recipient, reject_unlisted_recipient
smtpd_sender_restrictions = reject_non_fqdn_sender
""")
    (folder / "config" / "master.cf").write_text(f"""
{HOST}:{server.port} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt
{HOST}:{server.tls_port} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
lmtp unix - - n - - lmtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
tlsmgr unix - - n 1000? 1 tlsmgr
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
""")
    return ["postfix", "-c", str(folder / "config"), "start-fg"]


if __name__ == "__main__":
    with running() as server:
        print(server)
        input("Enter ends it. ")
