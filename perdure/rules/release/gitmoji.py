"""Gitmoji: a commit's leading emoji (or ``:code:``) as a type of Conventional Commits.

Source of what each means and how far it moves a version: https://gitmoji.dev/ (names and ``semver`` of its list).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_CODE = re.compile(
    r"(?P<mark>:[a-z0-9_+-]{1,40}:|[\u2190-\u2bff\U0001f300-\U0001faff][\ufe0f\u200d]*) *(?P<rest>.*)", re.S
)

# Types that move a version are those of commit_types; "chore" and the like are what users do not notice.
_TYPES: Mapping[str, str] = {
    "feat": "sparkles ✨",
    "breaking": "boom 💥",
    "fix": "bug 🐛 ambulance 🚑 adhesive_bandage 🩹 pencil2 ✏ lock 🔒 goal_net 🥅 alien 👽",
    "perf": "zap ⚡",
    "revert": "rewind ⏪",
    "change": "lipstick 💄 globe_with_meridians 🌐 wheelchair ♿ speech_balloon 💬 card_file_box 🗃 "
    "children_crossing 🚸 iphone 📱 egg 🥚 alembic ⚗ mag 🔍 label 🏷 "
    "triangular_flag_on_post 🚩 dizzy 💫 wastebasket 🗑 passport_control 🛂 "
    "bento 🍱 chart_with_upwards_trend 📈 wrench 🔧",
    "deps": "arrow_up ⬆ arrow_down ⬇ pushpin 📌 heavy_plus_sign ➕ heavy_minus_sign ➖ package 📦",
    "refactor": "recycle ♻ art 🎨 fire 🔥 truck 🚚 coffin ⚰ building_construction 🏗 necktie 👔 bricks 🧱",
    "docs": "memo 📝 bulb 💡 page_facing_up 📄 books 📚",
    "test": "white_check_mark ✅ test_tube 🧪 camera_flash 📸 clown_face 🤡",
    "ci": "rocket 🚀 green_heart 💚 construction_worker 👷 rotating_light 🚨",
    "chore": "tada 🎉 bookmark 🔖 construction 🚧 hammer 🔨 twisted_rightwards_arrows 🔀 see_no_evil 🙈 loud_sound 🔊 "
    "mute 🔇 busts_in_silhouette 👥 seedling 🌱 technologist 🧑 beers 🍻 poop 💩 closed_lock_with_key 🔐",
}
_TYPE_OF = {mark: kind for kind, marks in _TYPES.items() for mark in marks.split()}


def split_gitmoji(subject: str) -> tuple[str, str]:
    """Return (type, the rest) of a subject that begins with a known emoji; an empty type for every other one."""
    match = _CODE.fullmatch(subject)
    if match is None or not match["rest"]:
        return "", subject
    kind = _TYPE_OF.get(match["mark"].strip(":").rstrip("\ufe0f\u200d"), "")
    return (kind, match["rest"].lstrip("\ufe0f\u200d ")) if kind else ("", subject)


def strip_gitmoji(subject: str) -> str:
    """Return a subject without a leading emoji of the list."""
    return split_gitmoji(subject)[1]
