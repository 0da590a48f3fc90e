// A server over stdio that answers each line with itself.
process.stdin.on('data', chunk => process.stdout.write(chunk))
