"""Ways out through the file system."""

from __future__ import annotations

from tests.hostile.escapes.base import Escape

FILES = (
    Escape("write outside", "agents that delete homes", 'open(W["outside"] + "/written", "w").write("x")'),
    Escape("delete outside", "agents that delete homes", 'os.unlink(W["outside"] + "/precious")'),
    Escape("dot dot", "CWE-22", 'open("../" * 30 + W["outside"] + "/dotted", "w").write("x")'),
    Escape("write by link", "CWE-61", 'os.symlink(W["outside"] + "/linked", "l"); open("l", "w").write("x")'),
    Escape("read by link", "CWE-61", 'os.symlink(W["secret"], "r"); show("r")'),
    Escape("read by a link that came with the repository", "CVE-2024-32002 and kin", 'show("planted-link")'),
    Escape("hard link", "CWE-62", 'os.link(W["secret"], "hard"); show("hard")'),
    Escape("link through proc", "CVE-2018-15664", 'os.symlink("/proc/self/root" + W["secret"], "p"); show("p")'),
    Escape("shadow", "MITRE T1003.008", 'show("/etc/shadow"); escaped()', needs_root=True),
    Escape("home", "MITRE T1552.004", 'show(W["home"] + "/.ssh/id_rsa")'),
    Escape("another job's files", "agents that share a checkout", 'show(W["other_job"] + "/notes")'),
    Escape("beside the workspace", "agents that share a checkout", 'show("../other-job/notes")'),
    Escape(
        "search the machine",
        "MITRE T1083",
        """
tops = ["/tmp", "/workspace", "/run", "/var", "/home", "/mnt", "/srv", "/opt", "/", "/proc/1/root/tmp"]
each(show, [path for top in tops for path in glob.glob(top + "/escape-*/*/" + W["name"])])
""",
    ),
    Escape(
        "file in shared memory",
        "MITRE T1027.011",
        'show("/dev/shm/" + W["name"])',
    ),
    Escape(
        "system program",
        "MITRE T1554",
        'path = "/usr/local/bin/" + W["name"]; open(path, "w").write("x"); os.unlink(path); escaped()',
        needs_root=True,
    ),
    Escape(
        "interpreter",
        "a poisoned standard library, MITRE T1574",
        "open(os.__file__, 'r+').close(); escaped()",
        needs_root=True,
    ),
    Escape(
        "setuid program left behind",
        "the reason for the Nix sandbox's chmod filter",
        'open("left", "w").write("x"); os.chmod("left", 0o4755)\nif os.stat("left").st_mode & 0o4000: escaped()',
    ),
    Escape(
        "setuid program by the new call",
        "fchmodat2, which older filters do not know",
        """
open("left2", "w").write("x")
call("fchmodat2", -100, ctypes.c_char_p(b"left2"), 0o4755, 0)
if os.stat("left2").st_mode & 0o4000: escaped()
""",
    ),
    Escape(
        "setuid program at birth",
        "open and mknod take a mode too",
        'os.umask(0); os.close(os.open("born", os.O_CREAT | os.O_WRONLY, 0o4755))\n'
        'if os.stat("born").st_mode & 0o4000: escaped()',
    ),
    Escape(
        "program with capabilities left behind",
        "capabilities(7), security.capability",
        'open("able", "w"); os.setxattr("able", "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0)); '
        "escaped()",
        needs_root=True,
    ),
    Escape(
        "chroot and back",
        "the classic breakout of chroot",
        """
os.mkdir("jail"); here = os.open(".", os.O_RDONLY); os.chroot("jail"); os.fchdir(here)
for _ in range(30): os.chdir("..")
os.chroot("."); show(W["secret"])
""",
        needs_root=True,
    ),
    Escape(
        "file handle",
        "shocker.c (Docker, 2014): open_by_handle_at on the root's inode",
        """
here = os.open(".", os.O_RDONLY)
handle = ctypes.create_string_buffer(struct.pack("=IiII", 8, 1, 2, 0))
root = call("open_by_handle_at", here, handle, os.O_RDONLY)
os.stat("tmp", dir_fd=root); escaped(str(os.listdir(root)))
""",
        needs_root=True,
    ),
    Escape(
        "file open in the worker",
        "CVE-2024-21626 (Leaky Vessels)",
        'each(lambda fd: show("/proc/self/fd/" + fd), [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2])',
    ),
    Escape(
        "another process's root",
        "MITRE T1611",
        "each(lambda pid: show(f\"/proc/{pid}/root{W['secret']}\"), pids())",
    ),
    Escape(
        "another process's folder",
        "proc(5): cwd",
        "each(lambda pid: show(f\"/proc/{pid}/cwd/{W['name']}\"), pids())",
    ),
    Escape(
        "another process's open file",
        "proc(5): fd",
        "each(lambda pid: show(f\"/proc/{pid}/fd/{W['victim_fd']}\"), pids())",
    ),
    Escape(
        "the sandbox's own program",
        "CVE-2019-5736: the runtime is overwritten through /proc/pid/exe",
        """
try: os.open(f"/proc/{1 if os.getppid() < 9 else os.getppid()}/exe", os.O_WRONLY)
except OSError as busy:
    if busy.errno != errno.ETXTBSY: raise
escaped("one only has to wait for its end")
""",
        needs_root=True,
    ),
)
