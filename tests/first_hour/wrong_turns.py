"""Wrong turns of the first hour: each ends in a sentence and exit code 2, or 1 where it is asked of
something that is not there.
"""

from __future__ import annotations

from tests.first_hour.steps import Type

IN_A_NEW_HOME = (
    Type(command="frazil status", exit_code=1),
    Type(command="frazil table list", exit_code=1),
    Type(command="frazil table show db.flights", exit_code=1),
    Type(command="test ! -e .frazil", shown="none"),
    Type(command="frazil tabel list", exit_code=2),
    Type(command="FRAZIL_INBX=file:///tmp/inbox frazil status", exit_code=2),
    Type(command="FRAZIL_SERVICE__HTTP_PORT=many frazil serve", exit_code=2),
    Type(command="FRAZIL_CONFIG=absent.toml frazil serve", exit_code=2),
    Type(command="mkdir folder.toml && FRAZIL_CONFIG=folder.toml frazil serve", exit_code=2),
    Type(
        command="printf 'inbox = ' > broken.toml && FRAZIL_CONFIG=broken.toml frazil serve",
        exit_code=2,
    ),
    Type(command='frazil table create db.flights --schema "id lnog"', exit_code=2),
    Type(
        command='frazil table create db.flights --schema "id long" --partition "days(id)"',
        exit_code=2,
    ),
    Type(command='frazil table create flights --schema "id long"', exit_code=2),
)

WHILE_IT_SERVES = (
    Type(command="frazil serve", exit_code=2),
    Type(command="frazil table list", terminal=True),
    Type(command="frazil table show db.flights", terminal=True),
    Type(command="frazil status", terminal=True, shown="none"),
)
