"""Ways out through the kernel: devices, switches, namespaces and calls with a long list of holes."""

from __future__ import annotations

from tests.hostile.escapes.base import Escape

_OPEN = "fd = os.open({path!r}, os.O_WRONLY); os.close(fd); escaped()"

KERNEL = (
    Escape("program for core dumps", "core_pattern", _OPEN.format(path="/proc/sys/kernel/core_pattern"), True),
    Escape("program for modules", "CVE-2022-0185", _OPEN.format(path="/proc/sys/kernel/modprobe"), True, True),
    Escape("sysctl of the machine", "proc_sys(5)", _OPEN.format(path="/proc/sys/vm/overcommit_memory"), True),
    Escape(
        "program for empty control groups",
        "CVE-2022-0492: release_agent",
        'each(lambda path: (os.close(os.open(path, os.O_WRONLY)), escaped(path)), glob.glob("/sys/fs/cgroup/**/'
        '*release*", recursive=True) or ["/sys/fs/cgroup/release_agent"])',
        needs_root=True,
    ),
    Escape(
        "leave the control group",
        "cgroups(7)",
        'each(lambda path: (open(path, "w").write("0"), escaped(path)), ["/sys/fs/cgroup/pids/cgroup.procs", '
        '"/sys/fs/cgroup/cgroup.procs"])',
        needs_root=True,
    ),
    Escape("host name", "sethostname(2)", "socket.sethostname(socket.gethostname()); escaped()", True),
    Escape(
        "make a device",
        "MITRE T1611: mknod",
        'os.mknod("made", stat.S_IFCHR | 0o600, os.makedev(1, 3)); os.open("made", os.O_RDONLY); escaped()',
        needs_root=True,
    ),
    Escape(
        "devices",
        "disks, kvm, fuse, tun, loop: MITRE T1006",
        'each(lambda path: (os.open("/dev/" + path, os.O_RDWR | os.O_NONBLOCK), escaped(path)), '
        '["vda", "sda", "nvme0n1", "kmsg", "mem", "kvm", "fuse", "net/tun", "loop-control"])',
        needs_root=True,
    ),
    Escape("kernel log", "dmesg(1), addresses in it", "checked(libc.klogctl(10, None, 0)); escaped()", needs_root=True),
    Escape(
        "kernel module", "MITRE T1547.006", 'reached("init_module", None, 0, None)', needs_root=True, is_optional=True
    ),
    Escape(
        "another kernel",
        "kexec_load(2)",
        'reached("kexec_load", 0, 0, None, 1 << 40)',
        needs_root=True,
        is_optional=True,
    ),
    Escape("reboot", "reboot(2)", 'reached("reboot", 0, 0, 0, None)', needs_root=True),
    Escape("swap off", "swapoff(2)", 'reached("swapoff", ctypes.c_char_p(b"/nothing"))', needs_root=True),
    Escape("process accounting", "acct(2)", 'reached("acct", ctypes.c_char_p(b"/nothing"))', needs_root=True),
    Escape("I/O ports", "iopl(2)", 'reached("iopl", 3)', needs_root=True, is_optional=True),
    Escape("watch all files", "fanotify(7)", 'call("fanotify_init", 4, 0); escaped()', needs_root=True),
    Escape("bpf", "CVE-2021-3490", 'call("bpf", 0, struct.pack("<12I", 2, 4, 8, 1, *[0] * 8), 48); escaped()', True),
    Escape(
        "perf",
        "CVE-2013-2094",
        'attr = struct.pack("<IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x61) + bytes(64)\n'
        'call("perf_event_open", attr, 0, -1, -1, 0); escaped()',
        is_optional=True,
    ),
    Escape("user faults", "the pause button of kernel exploits", 'call("userfaultfd", 1); escaped()', is_optional=True),
    Escape(
        "io_uring",
        "kCTF: 60% of 2022's kernel exploits",
        'call("io_uring_setup", 1, bytes(120)); escaped()',
        is_optional=True,
    ),
    Escape("user namespace", "CVE-2022-0185", "checked(libc.unshare(0x10000000)); escaped()"),
    Escape(
        "user namespace by the new call",
        "CVE-2021-41133: clone3, which the filter could not look into",
        """
args = ctypes.create_string_buffer(struct.pack("<8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
pid = call("clone3", args, 64)
if pid == 0: os._exit(0)
escaped()
""",
    ),
    Escape(
        "mount in a user namespace",
        "CVE-2023-0386: overlayfs",
        'checked(libc.unshare(0x10020000)); checked(libc.mount(b"t", b".", b"tmpfs", 0, None)); escaped()',
    ),
    Escape(
        "mount",
        "CAP_SYS_ADMIN",
        'checked(libc.unshare(0x20000)); checked(libc.mount(b"t", b".", b"tmpfs", 0, None)); escaped()',
        needs_root=True,
    ),
    Escape("new mount calls", "CVE-2022-0185: fsopen", 'call("fsopen", ctypes.c_char_p(b"tmpfs"), 0); escaped()', True),
    Escape("clone a mount", "open_tree(2)", 'call("open_tree", -100, ctypes.c_char_p(b"/"), 1); escaped()', True),
    Escape(
        "enter a namespace",
        "nsenter(1)",
        'each(lambda pid: (checked(libc.setns(os.open(f"/proc/{pid}/ns/uts", 0), 0)), escaped()), pids())',
        needs_root=True,
    ),
    Escape(
        "capabilities",
        "capabilities(7)",
        'able = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]\n'
        "if int(able[0], 16): escaped()",
        needs_root=True,
    ),
    Escape(
        "setuid programs",
        "MITRE T1548.001",
        'if "NoNewPrivs:\\t0" in open("/proc/self/status").read() and os.access("/usr/bin/passwd", os.X_OK): escaped()',
    ),
    Escape(
        "the old 32-bit door",
        "filters that look at one architecture",
        """
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("53 b8 20010000 31db b9 fdffffff 31d2 cd80 5b c3"))
door = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
answer = door()
if answer < 0: raise OSError(-answer, os.strerror(-answer))
escaped("keyctl")
""",
        is_optional=True,
    ),
)
