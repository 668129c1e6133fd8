"""The same counts, cuts and ids on many machines: on Spark, and as steps of datatrove.

In: a table of documents that Spark holds, or documents of a datatrove pipeline. Out: what `koktok count`, the analyses of
`koktok train` and `koktok encode` give on one machine, bit for bit, for any number of partitions in any order.
"""
