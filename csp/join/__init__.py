"""Join a room on another machine: the link process makes it look like a room of this machine.

The link announces the room as a gateway does, so that every command and every sidecar finds it. Over ssh, it
listens on a loopback port of its own and passes each connection on through a forwarding of ssh, which it
starts again whenever it is lost. The port belongs to the link as long as it runs: nobody else can get the
tokens that clients send while there is no connection.
"""
