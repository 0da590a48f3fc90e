// A minimal round trip to another Node process.
process.on('message', message => process.send(message))
process.on('disconnect', () => process.exit(0))
