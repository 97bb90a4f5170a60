"""A Parquet file of history, as DuckDB and pandas read it, against the same history as CSV.

table.py FILE.parquet FILE.csv
"""

import sys

import duckdb
import pandas

TYPES = {
    "time": "TIMESTAMP WITH TIME ZONE",
    "device": "VARCHAR",
    "port": "UINTEGER",
    "netdev": "VARCHAR",
    "source": "VARCHAR",
    "counter": "VARCHAR",
    "signal": "VARCHAR",
    "unit": "VARCHAR",
    "value": "UBIGINT",
    "low": "UBIGINT",
    "high": "UBIGINT",
}
# The archive's times are microseconds, and so are those of both readers: nothing is rounded on the way.
CSV_TYPES = TYPES | {"time": "TIMESTAMPTZ"}


def duckdb_agrees(parquet, csv):
    sql = duckdb.connect()
    sql.execute("SET TimeZone = 'UTC'")
    found = {name: kind for name, kind, *_ in sql.execute(f"DESCRIBE SELECT * FROM '{parquet}'").fetchall()}
    assert found == TYPES, found
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in CSV_TYPES.items())
    sql.execute(f"CREATE VIEW parquet AS SELECT * FROM '{parquet}'")
    sql.execute(f"CREATE TABLE csv AS SELECT * FROM read_csv('{csv}', header = true, columns = {{{columns}}})")
    rows = sql.execute("SELECT count(*) FROM csv").fetchone()[0]
    assert rows == sql.execute("SELECT count(*) FROM parquet").fetchone()[0], rows
    for one, other in [("csv", "parquet"), ("parquet", "csv")]:
        missing = sql.execute(f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other} LIMIT 3").fetchall()
        assert not missing, f"in {one}, not in {other}: {missing}"
    if rows:
        # By the ranges in the footer too, with which row groups are passed over.
        middle = "(SELECT median(epoch_us(time)) FROM csv)"
        late = [sql.execute(f"SELECT count(*) FROM {table} WHERE epoch_us(time) > {middle}").fetchone() for table in ("csv", "parquet")]
        assert late[0] == late[1], late
        stamp = sql.execute("SELECT max(time) FROM csv").fetchone()[0]
        last = sql.execute("SELECT count(*) > 0 FROM parquet WHERE time >= ?", [stamp]).fetchone()[0]
        assert last, stamp
    return rows


def pandas_agrees(parquet, csv):
    table = pandas.read_parquet(parquet)
    kinds = {name: str(kind) for name, kind in table.dtypes.items()}
    assert kinds["time"] == "datetime64[us, UTC]", kinds
    assert (kinds["port"], kinds["value"]) == ("uint32", "uint64"), kinds
    text = pandas.read_csv(csv, dtype={"value": "uint64", "port": "uint32"})
    assert len(table) == len(text)
    if len(table) == 0:
        return
    assert (table["value"] == text["value"]).all()
    assert (table["time"] == pandas.to_datetime(text["time"], format="ISO8601")).all()
    for column in ["device", "netdev", "source", "counter", "signal", "unit"]:
        assert (table[column].fillna("") == text[column].fillna("")).all(), column
    for column in ["low", "high"]:
        both_absent = table[column].isna() & text[column].isna()
        assert ((table[column] == text[column]) | both_absent).all(), column


rows = duckdb_agrees(*sys.argv[1:])
pandas_agrees(*sys.argv[1:])
print(rows)
