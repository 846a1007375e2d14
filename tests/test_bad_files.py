"""Files that are missing, cannot be written, or are where SQLite cannot lock them: an error, and no job is lost."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from relet import App, StoreUnavailable
from relet._store import sqlite as sqlite_module
from relet._store import store as store_module
from relet._store.retry import RetryFor
from relet._store.sqlite import SQLiteStore, file_system
from relet.errors import StoreError, StoreRefused
from tests.databases import inventory
from tests.test_bad_urls import uses


@pytest.fixture(autouse=True)
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "DEFAULT_RETRY", RetryFor(0.3))


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


# files that are missing, or cannot be written


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    for name, use in uses(f"sqlite:///{tmp_path}/missing/shop.db"):
        if name != "App":
            with pytest.raises(
                StoreRefused, match=r"missing/shop\.db.*does the directory exist, and may it be written"
            ):
                use()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="unable to open database file"):
        App(f"sqlite:///{tmp_path}").client.count()


@pytest.mark.parametrize("content", [b"this is a letter, not a database. " * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_file_that_is_no_database_is_reported_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "letter.txt"
    path.write_bytes(content)
    for name, use in uses(f"sqlite:///{path}"):
        if name != "App":
            with pytest.raises(StoreError, match=r"letter\.txt.*(not a database|malformed|unsupported|i/o)"):
                use()
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.touch()
    app = App(f"sqlite:///{path}")
    assert app.client.count() == 0
    app.close()


def as_unprivileged_user(action: Callable[[], None]) -> None:
    """Call this without root's right to write everywhere. In a child: the right cannot be regained."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("what", ["folder", "file", "both", "new file"])
def test_a_file_that_may_not_be_written_is_reported(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    path = folder / "shop.db"
    app = App(f"sqlite:///{path}")

    @app.task
    def work() -> None: ...

    if what != "new file":
        work.enqueue()
    else:  # so that all that is needed has been loaded, where it may be read
        App("sqlite:///:memory:").client.count()
    app.close()
    for file in folder.iterdir():
        file.chmod(0o444 if what in ("file", "both") else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.stat().st_mode & 0o001 == 0 and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o011)

    def refused() -> None:
        fresh = App(f"sqlite:///{path}")

        @fresh.task(name="work")
        def again() -> None: ...

        with pytest.raises(StoreRefused, match=r"shop\.db.*(readonly|read-only|unable to open)"):
            again.enqueue()

    try:
        as_unprivileged_user(refused)
    finally:
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)
    if what != "new file":
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("select count(*) from relet_jobs").fetchone() == (1,)


def test_a_full_file_is_reported_and_nothing_is_lost(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'shop.db'}")

    @app.task
    def work(text: str) -> None: ...

    work.enqueue("there before")
    store = app._store()
    assert isinstance(store, SQLiteStore)
    assert store._writer is not None
    (pages,) = store._writer.execute("pragma page_count").fetchone()
    store._writer.execute(f"pragma max_page_count = {pages + 4}")
    before = inventory(store)
    with pytest.raises(StoreUnavailable, match=r"shop\.db.*full.*nothing was stored"):
        app.client.enqueue_many([work.draft("x" * 100_000), work.using(unique="k", target="t").draft("y")])
    assert inventory(store) == before
    store._writer.execute("pragma max_page_count = 1000000")
    work.enqueue("z" * 100_000)
    assert app.client.count() == 2
    app.close()


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1500) as disk:
        app = App(f"sqlite:///{disk / 'shop.db'}")

        @app.task
        def work(text: str) -> None: ...

        stored = [work.enqueue("there before").id]
        ballast = disk / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(StoreError, match=r"shop\.db.*(full|disk)") as caught:
            for _ in range(100):
                stored.append(work.enqueue("x" * 50_000).id)
        assert isinstance(caught.value, StoreUnavailable)
        assert {job.id for job in app.client.jobs(limit=1000).jobs} == set(stored)
        ballast.unlink()
        stored.append(work.enqueue("there is room again").id)
        assert {job.id for job in app.client.jobs(limit=1000).jobs} == set(stored)
        app.close()


@pytest.mark.long
def test_a_write_that_the_system_refuses_is_reported(tmp_path: Path) -> None:
    """A limit of the process on the size of files: an I/O error, not a full disk."""
    script = f"""
import resource, sys
from relet import App
from relet.errors import StoreError
from relet._store import store
from relet._store.retry import RetryFor
store.DEFAULT_RETRY = RetryFor(0.2)
app = App("sqlite:///{tmp_path / "shop.db"}")
@app.task
def work(text: str): ...
work.enqueue("there before")
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
try:
    for n in range(100):
        work.enqueue("x" * 50_000)
except StoreError as error:
    print(type(error).__name__, app.client.count() == n + 1)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.stdout.split() in (["StoreUnavailable", "True"], ["StoreRefused", "True"]), run.stderr


# network file systems


MOUNTS = """\
21 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:21 / /mnt rw - ext4 /dev/sdb1 rw
23 22 0:22 / /mnt/nfs rw - nfs4 server:/export rw
24 22 0:23 / /mnt/with\\040blank rw - cifs //server/share rw
25 22 0:24 / /mnt/données rw - nfs server:/données rw
26 23 0:25 / /mnt/nfs/local rw - tmpfs tmpfs rw
27 22 0:26 / /mnt/ssh rw - fuse.sshfs me@server: rw
28 22 0:27 / /mnt/nfs2 rw - ext4 /dev/sdc1 rw
29 22 0:28 / /mnt/back\\134slash rw - smb3 //server/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/shop.db", "ext4"),
        ("/mnt/shop.db", "ext4"),
        ("/mnt/nfs/shop.db", "nfs4"),
        ("/mnt/nfs/deep/down/shop.db", "nfs4"),
        ("/mnt/nfs/local/shop.db", "tmpfs"),
        ("/mnt/nfs2/shop.db", "ext4"),
        ("/mnt/nfsx.db", "ext4"),
        ("/mnt/with blank/shop.db", "cifs"),
        ("/mnt/données/shop.db", "nfs"),
        ("/mnt/ssh/shop.db", "fuse.sshfs"),
        ("/mnt/back\\slash/shop.db", "smb3"),
    ],
)
def test_the_kind_of_a_file_system_is_found(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(path, mounts) == kind


def test_where_the_system_does_not_tell_the_kind_is_unknown(tmp_path: Path) -> None:
    assert file_system("/shop.db", tmp_path / "missing") == "unknown"
    assert file_system(str(tmp_path)) != "unknown" or not Path("/proc/self/mountinfo").exists()


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre", "afs"]
)
def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sqlite_module, "file_system", lambda path: kind)
    for word in ("count", "migrate"):
        with pytest.raises(StoreRefused, match=rf"network file system \({kind}\).*use a local disk, or PostgreSQL"):
            getattr(App(f"sqlite:///{tmp_path / 'shop.db'}").client, word)()
    assert list(tmp_path.iterdir()) == [], "nothing was made there"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "apfs", "unknown", "fuse.ext4"])
def test_a_local_file_system_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sqlite_module, "file_system", lambda path: kind)
    app = App(f"sqlite:///{tmp_path / 'shop.db'}")
    assert app.client.count() == 0
    app.close()


# the WAL-reset bug


@contextmanager
def used_elsewhere(path: Path) -> Iterator[None]:
    """Another process has the file open."""
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('pragma journal_mode = wal');"
        "c.execute('create table if not exists t (x)'); c.execute('select * from t').fetchall();"
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def test_a_sqlite_with_the_wal_reset_bug_is_warned_of_where_two_processes_use_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_module, "_warned", False)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    for name in ("sqlite:///:memory:", f"sqlite:///{tmp_path / 'alone.db'}"):
        app = App(name)
        assert app.client.count() == 0
        app.close()
    assert "WAL-reset" not in caplog.text, "one process is safe"
    for name in "ab":
        path = tmp_path / f"{name}.db"
        with used_elsewhere(path):
            app = App(f"sqlite:///{path}")
            app.client.count()
            app.close()
    (record,) = [record for record in caplog.records if "WAL-reset" in record.getMessage()]
    assert (record.levelname, record.name) == ("WARNING", "relet.store")
    assert "Run one process only, use PostgreSQL, or" in record.getMessage()


def test_a_sqlite_without_the_bug_is_not_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_module, "_warned", False)
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    app = App(f"sqlite:///{tmp_path / 'shop.db'}")
    assert app.client.count() == 0
    app.close()
    assert "WAL-reset" not in caplog.text


def test_a_sqlite_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreError, match=r"SQLite 3\.35(\.0)? or newer is needed"):
        App("sqlite:///:memory:")
