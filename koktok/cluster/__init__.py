"""The same counts, analyses and ids on many machines: on Spark, and as steps of a datatrove pipeline.

In: a Spark table of documents, or the documents of a datatrove pipeline. Out: what `koktok count`, the analyses of
`koktok train` and `koktok encode` give on one machine, bit for bit, for any number of partitions in any order.
"""
