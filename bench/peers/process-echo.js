// A stdio server that returns each line.
process.stdin.on('data', chunk => process.stdout.write(chunk))
