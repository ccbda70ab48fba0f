"""Ways out through sockets."""

from __future__ import annotations

from tests.hostile.escapes.base import Escape

NETWORK = (
    Escape(
        "service on loopback",
        "Temporal and the API listen here",
        'print(socket.create_connection(("127.0.0.1", W["tcp"]), 3).recv(100))',
    ),
    Escape(
        "service on loopback by IPv6 words",
        "filters that know 127.0.0.1 only",
        'print(socket.create_connection(("::ffff:127.0.0.1", W["tcp"]), 3).recv(100))',
    ),
    Escape(
        "name server",
        "DNS tunnels: iodine, dnscat2",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)\n"
        's.sendto(b"exfiltrate.example.org", ("127.0.0.1", W["udp"])); print(s.recv(100))',
    ),
    Escape(
        "this machine's interfaces",
        "MITRE T1016",
        'names = [name for _, name in socket.if_nameindex() if name != "lo"]\nif names: escaped(str(names))',
    ),
    Escape(
        "metadata service",
        "169.254.169.254: a route must exist first",
        "\n".join(
            (
                "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
                's.connect(("169.254.169.254", 80)); escaped(str(s.getsockname()))',
            )
        ),
    ),
    Escape(
        "abstract socket",
        "CVE-2020-15257 (containerd-shim)",
        's = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect("\\0" + W["name"]); print(s.recv(100))',
    ),
    Escape(
        "path socket",
        "docker.sock",
        's = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(W["socket"]); print(s.recv(100))',
    ),
    Escape(
        "socket in the workspace",
        "a daemon of the user that listens in the project's folder",
        's = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect("daemon.sock"); print(s.recv(100))',
    ),
    Escape("hypervisor", "vsock(7) has no namespace", "socket.socket(40, socket.SOCK_STREAM); escaped()", False, True),
    Escape(
        "kernel's crypto",
        "AF_ALG, CVE-2026-31431 and kin",
        "socket.socket(38, socket.SOCK_SEQPACKET); escaped()",
        False,
        True,
    ),
    Escape(
        "raw packets",
        "CVE-2020-14386: AF_PACKET",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); escaped()",
        needs_root=True,
    ),
    Escape(
        "firewall",
        "CVE-2024-1086: nf_tables from a new user namespace",
        """
checked(libc.unshare(0x10000000 | 0x40000000))
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12); escaped()
""",
    ),
)
