"""A store on a Chroma server, for several machines.

The server is the truth. Each machine keeps a replica of it, an ordinary store directory in the
cache, which answers everything but the approximate search of a large store.

rest     Chroma's HTTP interface
records  what a paper is on the server
lease    which of several machines may write
remote   the store on the server: its head, records and vectors
replica  the store's copy on this machine, and what of it the server lacks
sync     from the server to the replica, and back
store    both as one `Store`
"""
