"""Loading of plugins from entry points."""

from pathlib import Path

import pytest

from numbench.core.installation import load_plugins
from numbench.errors import BadInput
from tests.support.case_tables import each_row

GROUP = "numbench.test_plugins"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that installs a package with one module and entry points of GROUP."""
    monkeypatch.syspath_prepend(tmp_path)

    def install_package(package: str, code: str, **entry_points: str) -> None:
        (tmp_path / f"{package}.py").write_text(code)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))

    return install_package


def test_objects_come_with_their_names_in_alphabetical_order(install):
    install(
        "plugin_letters", "B = 'b'\nA = 'a'\n", zeta="plugin_letters:B", alpha="plugin_letters:A"
    )
    assert load_plugins(GROUP, str) == [("alpha", "a"), ("zeta", "b")]


@each_row(__file__, "broken_plugins")
def test_a_broken_plugin_is_named_with_the_reason_and_the_way_out(install, code, reason, request):
    package = f"plugin_broken_{request.node.callspec.indices['code']}"
    install(package, code, mine=f"{package}:PLUGIN")
    with pytest.raises(BadInput) as error:
        load_plugins(GROUP, str)
    message = str(error.value)
    assert reason in message
    assert f"plugin {package}:PLUGIN of package {package}" in message
    assert f"entry point 'mine' in {GROUP}" in message
    assert "uninstall it" in message


def test_a_name_that_two_packages_register_is_rejected(install):
    install("plugin_first", "PLUGIN = 'a'", same="plugin_first:PLUGIN")
    install("plugin_second", "PLUGIN = 'b'", same="plugin_second:PLUGIN")
    with pytest.raises(BadInput, match="'same' is registered twice"):
        load_plugins(GROUP, str)
