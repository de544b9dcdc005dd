"""Ways in which a Python program changes files. Each gets a folder that holds `old.txt`, `old.npy` and `tree/leaf.txt`."""

import textwrap
from collections.abc import Collection

HEAD = """
import csv, glob, hashlib, json, logging, mmap, os, pathlib, pickle, shutil, sqlite3, subprocess, sys, tempfile, zipfile
import numpy as np

TOUCH = "open('new', 'w')"
"""

WAYS = {
    "appends": "open(f'{here}/old.txt', 'a').write('more')",
    "opens_anew": "open(f'{here}/old.txt', 'w').write('new')",
    "opens_to_update": "with open(f'{here}/old.txt', 'r+') as file: file.seek(1); file.write('X')",
    "creates": "open(f'{here}/new.txt', 'x').write('new')",
    "makes_by_descriptor": "fd = os.open(f'{here}/new.txt', os.O_CREAT | os.O_WRONLY); os.write(fd, b'1'); os.close(fd)",
    "removes": "os.remove(f'{here}/old.txt')",
    "unlinks": "pathlib.Path(here, 'old.txt').unlink()",
    "renames": "os.rename(f'{here}/old.txt', f'{here}/other.txt')",
    "replaces": "open(f'{here}/new.txt', 'w').write('new'); os.replace(f'{here}/new.txt', f'{here}/old.txt')",
    "renames_a_folder": "os.rename(f'{here}/tree', f'{here}/wood')",
    "makes_folders": "os.makedirs(f'{here}/a/b/c', exist_ok=True); open(f'{here}/a/b/c/d', 'w').write('d')",
    "removes_a_tree": "shutil.rmtree(f'{here}/tree')",
    "makes_a_tree_again": "shutil.rmtree(f'{here}/tree'); os.mkdir(f'{here}/tree'); open(f'{here}/tree/other', 'w').write('1')",
    "copies": "shutil.copy(f'{here}/old.txt', f'{here}/copy.txt'); shutil.copytree(f'{here}/tree', f'{here}/copy')",
    "moves": "shutil.move(f'{here}/old.txt', f'{here}/tree/old.txt')",
    "truncates": "os.truncate(f'{here}/old.txt', 1)",
    "changes_permissions": "os.chmod(f'{here}/old.txt', 0o600)",
    "changes_times": "os.utime(f'{here}/old.txt', (1, 1))",
    "links": "os.symlink('old.txt', f'{here}/link'); os.link(f'{here}/old.txt', f'{here}/hard')",
    "writes_through_a_link": "os.symlink(f'{here}/old.txt', 'way_out'); open('way_out', 'w').write('new'); os.remove('way_out')",
    "writes_beside_the_program": "open(os.path.relpath(f'{here}/old.txt'), 'w').write('new')",
    "maps": "file = open(f'{here}/old.txt', 'r+b'); m = mmap.mmap(file.fileno(), 0); m[:1] = b'X'; m.flush()",
    "saves_an_array": "np.save(f'{here}/old.npy', np.ones(3)); np.savez(f'{here}/new.npz', a=np.ones(3))",
    "maps_an_array": "a = np.load(f'{here}/old.npy', mmap_mode='r+'); a[0] = 7; a.flush()",
    "pickles": "pickle.dump([1], open(f'{here}/old.txt', 'wb'))",
    "writes_rows": "csv.writer(open(f'{here}/old.txt', 'a')).writerow([1, 2])",
    "logs": "file = logging.FileHandler(f'{here}/old.txt'); file.emit(logging.makeLogRecord({})); file.close()",
    "writes_an_archive": "with zipfile.ZipFile(f'{here}/new.zip', 'w') as file: file.writestr('a', 'b')",
    "keeps_a_database": "db = sqlite3.connect(f'{here}/new.db'); db.execute('create table t (x)'); db.commit(); db.close()",
    "makes_temporary_files": "tempfile.mkdtemp(dir=here); tempfile.NamedTemporaryFile(dir=here, delete=False).write(b'1')",
    "asks_a_shell": "os.system(f'echo more >> {here}/old.txt; rm -r {here}/tree')",
    "starts_a_program": "subprocess.run(['cp', f'{here}/old.txt', f'{here}/copied.txt'], check=True)",
    "starts_another_python": "subprocess.run([sys.executable, '-c', TOUCH], check=True, cwd=here)",
    "changes_the_folder": "before = os.getcwd(); os.chdir(here); open('old.txt', 'w').write('new'); os.chdir(before)",
}


def program(place: str, without: Collection[str] = ()) -> str:
    """Returns a program that goes all ways in folders of one place, and prints what went wrong, and what it then finds."""
    functions = "\n".join(
        f"def {name}(here):\n{textwrap.indent(code, '    ')}\n" for name, code in WAYS.items()
    )
    return f"""{HEAD}
place = {place!r}
{functions}
def seen():
    found = {{}}
    for folder, folders, names in os.walk(place):
        for name in folders + names:
            path = os.path.join(folder, name)
            if not name.startswith("tmp"):
                found[os.path.relpath(path, place)] = os.path.isfile(path) and hashlib.sha256(open(path, "rb").read()).hexdigest()
    return found

if sys.argv[1:]:
    for way in ({", ".join(way for way in WAYS if way not in without)}):
        try:
            way(os.path.join(place, way.__name__))
        except BaseException as error:
            print("FAILED", way.__name__, type(error).__name__, error)
print(json.dumps(seen(), sort_keys=True))
"""
