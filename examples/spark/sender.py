"""The bank: it has segments of its customers, and gives them for customers that the shop has too."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from volery.spark import Match

folder, gateway, peer, rows = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

# Every third customer; some stand in the table twice.
number = F.col("id") * 3
customers = spark.range(int(rows)).select(
    F.concat(F.lit("customer"), number, F.lit("@example.org")).alias("email"),
    F.concat(F.lit("segment "), number % 7).alias("segment"),
)
customers = customers.union(customers.limit(100))

match = Match(
    run="example",
    role="sender",
    peer=peer,
    identity=f"{folder}/bank",
    gateway=gateway,
    work=f"{folder}/bank-work",
    workers=2,
)
print(match.plan(customers, key="email:email", payload=["segment"]))
report = match.run()
print(f"bank: sent {report.bytes_sent} bytes")
