"""Before the diff, the reviewer is told what the diff would not make plain."""

import hashlib

import pytest

from perdure.contracts.base import BlobRef, path_text
from perdure.contracts.plan import FileChange
from perdure.policy.hazards import name_hazards


class Contents(dict[str, bytes]):
    """Bytes by hash; makes the references that a change carries."""

    def ref(self, data: bytes | None) -> BlobRef | None:
        if data is None:
            return None
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        return BlobRef(sha256=name, size_bytes=len(data))

    def change(
        self,
        path: str | bytes,
        old: bytes | None = b"a\n",
        new: bytes | None = b"b\n",
        *,
        modes: tuple[str, str] = ("100644", "100644"),
    ) -> FileChange:
        text = path_text(path if isinstance(path, bytes) else path.encode())
        return FileChange(path=text, old=self.ref(old), new=self.ref(new), old_mode=modes[0], new_mode=modes[1])

    def hazards(self, *changes: FileChange) -> list[str]:
        return name_hazards(changes, lambda ref: self[ref.sha256])


def hazards_of(
    path: str | bytes, old: bytes | None = b"a\n", new: bytes | None = b"b\n", modes: str = "100644 100644"
) -> str:
    contents = Contents()
    before, after = modes.split(" ")
    return "\n".join(contents.hazards(contents.change(path, old, new, modes=(before, after))))


def test_an_ordinary_change_is_no_hazard() -> None:
    """A changed text file, CRLF and a byte order mark and other alphabets included, is named nowhere."""
    assert hazards_of("src/orders/списки.py", "\ufeffа\r\n".encode(), "\ufeff日本語 naïve\r\n".encode()) == ""


@pytest.mark.parametrize(
    ("modes", "said"),
    [
        ("100644 100755", "from a regular file to an executable file (mode 100644 → 100755)"),
        ("100755 100644", "from an executable file to a regular file"),
        (" 100755", "a new executable file"),
        ("120000 100644", "it was a symbolic link and becomes a regular file"),
        ("160000 ", "it was a submodule and is removed"),
        ("160000 160000", "a moved submodule"),
        (" 160000", "a new submodule"),
    ],
)
def test_what_a_file_is_changes(modes: str, said: str) -> None:
    """A changed mode, a link or a submodule is named with what it was and becomes."""
    assert said in hazards_of("tools/go", modes=modes)


@pytest.mark.parametrize(
    ("target", "outside"),
    [("../README", False), ("../../etc/passwd", True), ("/etc/passwd", True), ("x\x1b[2J", False)],
)
def test_a_link_is_named_with_its_target(target: str, outside: bool) -> None:
    """A link's target is shown safely, and whether it leaves the repository."""
    said = hazards_of("docs/x", None, target.encode(), " 120000")
    assert "a new symbolic link to '" + target.replace("\x1b", "^[") + "'" in said
    assert ("outside the repository" in said) is outside


def test_a_binary_is_named_by_size_and_hash() -> None:
    """What the diff cannot show is named by what it is exactly."""
    data = b"\x89PNG\0" + bytes(1000)
    said = hazards_of("logo.png", None, data, " 100644")
    assert f"binary, absent → 1,005 bytes SHA-256 {hashlib.sha256(data).hexdigest()}" in said


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".github/workflows/release.yml", "CI file"),
        (".GitHub/Workflows/x.yml", "CI file"),
        (".gitlab-ci.yml", "CI file"),
        ("Jenkinsfile", "CI file"),
        ("sub/.gitattributes", "tells git how"),
        (".gitmodules", "tells git how"),
        (".husky/pre-commit", "hook file"),
        (".pre-commit-config.yaml", "hook file"),
        (".envrc", "as soon as somebody opens"),
        (".vscode/tasks.json", "as soon as somebody opens"),
        (".github/CODEOWNERS", "who must review"),
        ("vendor/.git/hooks/post-checkout", "git's own folder"),
        ("a/GIT~1/config", "git's own folder"),
    ],
)
def test_files_that_act_are_named(path: str, said: str) -> None:
    """CI, hook, attribute and self-starting files are named, however they are spelt."""
    assert said in hazards_of(path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("src/раyload.py", "mixes letters of Cyrillic and Latin"),
        ("src/соре.py", "look like 'cope'"),
        ("src/safe\u202eyp.exe", "cannot be seen"),
        ("src/ad\u200bmin.py", "cannot be seen"),
        ("src/ｓetup.py", "drawn like 'src/setup.py'"),
        ("src/conf .py ", "space or a dot"),
        (b"caf\xe9.txt", "no UTF-8"),
    ],
)
def test_names_that_could_be_taken_for_others(path: str | bytes, said: str) -> None:
    """A name that looks like another one is named, shown safely."""
    shown = hazards_of(path)
    assert said in shown
    assert "\u202e" not in shown
    assert "\u200b" not in shown


def test_two_names_that_one_file_system_would_merge() -> None:
    """README and ReadMe, or café composed and decomposed, are one file elsewhere."""
    contents = Contents()
    said = contents.hazards(*(contents.change(name) for name in ("README", "ReadMe", "caf\u00e9", "cafe\u0301")))
    assert [line for line in said if "differ only" in line] == [
        "'README' and 'ReadMe' differ only in case or in letters that look alike.",
        "'cafe\u0301' and 'caf\u00e9' differ only in case or in letters that look alike.",
    ]


def test_content_that_steers_is_named_only_when_it_is_new() -> None:
    """Bidi, zero-width, escapes and lone carriage returns in the new text are counted; old ones are not."""
    said = hazards_of("a.py", b"x\x1b", "x\x1b # \u202e\u202e \u2066\rEND\x1b".encode())
    assert "^M ×1, ^[ ×1, ⟨U+202E⟩ ×2, ⟨U+2066⟩ ×1" in said
    assert hazards_of("a.py", "\u202e".encode(), "x \u202e".encode()) == ""
    assert "no UTF-8" in hazards_of("a.txt", b"old", b"caf\xe9")
