// The barest round trip there is to another process of Node.
process.on('message', message => process.send(message))
process.on('disconnect', () => process.exit(0))
