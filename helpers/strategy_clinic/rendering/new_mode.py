"""The command `clinic new`: the folder of a new failure mode, made from templates."""

import re
from pathlib import Path
from string import Template

from ..base import files
from ..base.display import say
from ..base.errors import UserError

TEMPLATES = Path(__file__).parent / "templates"
NEXT = """Next:
1. Replace every TODO in these files; they run as they are and show each part at work.
2. clinic render {id}               runs the page and writes its notebook and the map
3. Add {id} to a group of helpers/strategy_clinic/modes/groups.toml.
4. pytest tests -k "law or {id}"    tests the page and the rule
5. clinic record {id} --keras 2,3   stores its verdicts under every setup"""


def write_mode(identity: str, slug: str) -> Path:
    """Writes the folder of a new mode and returns it; raises UserError if the id or the slug cannot be used."""
    if not re.fullmatch(r"fm\d\d", identity):
        raise UserError(f"{identity!r} is not an id; an id is fm and two digits, such as fm49.")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", slug):
        raise UserError(f"{slug!r} is not a slug; use words in lower case with _ between them.")
    modes = files.package() / "modes"
    for folder in modes.glob("fm*"):
        if identity == folder.name[:4] or slug == folder.name[5:]:
            raise UserError(f"{identity}_{slug} cannot be made: there is {folder.name!r}.")
    folder = modes / f"{identity}_{slug}"
    folder.mkdir()
    for template in sorted(TEMPLATES.glob("*.txt")):
        text = Template(template.read_text()).substitute(
            id=identity, name=identity.upper(), slug=slug
        )
        (folder / template.stem).write_text(text)
        say(f"wrote {(folder / template.stem).relative_to(files.ROOT)}")
    say(NEXT.format(id=identity))
    return folder
