"""The shop: it gets the segments of its customers that the bank has too."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from volery.spark import Match

folder, gateway, peer, rows = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

# Every second customer, written otherwise than the bank does.
number = F.col("id") * 2
orders = spark.range(int(rows)).select(
    F.concat(F.lit("Customer"), number, F.lit("@Example.org ")).alias("email"), number.alias("number")
)

match = Match(
    run="example",
    role="receiver",
    peer=peer,
    identity=f"{folder}/shop",
    gateway=gateway,
    work=f"{folder}/shop-work",
    workers=2,
)
print(match.plan(orders, key="email:email", payload=True))
found, report = match.run()
found.show(5)

# Both tables are known here, so the result can be checked.
common = (F.col("number") % 3 == 0) & (F.col("number") < 3 * int(rows))
right = F.col("segment") == F.concat(F.lit("segment "), F.col("number") % 7)
expected = orders.where(common).count()
assert found.count() == found.where(right).count() == expected, (found.count(), expected)
print(f"shop: {expected} of {rows} rows match, each with the right segment")
