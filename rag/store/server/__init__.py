"""A store on a Chroma server, for several machines.

The server is the truth. Each machine keeps a replica of it, an ordinary store directory in the
cache, which answers everything but the approximate search of a large store.

connection, collection, rest  Chroma's HTTP interface
records    what a paper is on the server
lease      which of several machines may write
remote     the store on the server: its head, records and vectors
ledger     what a replica notes: the keys of its vectors, and what the server lacks
replica    where the replica is, and who may change it
sync       from the server to the replica, and back
copying    a replica brought up to its server
store      both as one `Store`
rewriting  everything on the server replaced, by a rebuild
"""
