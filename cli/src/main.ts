import { main } from './program.ts'

const GRACE_MS = 1_000

process.exitCode = await main(process.argv.slice(2))
// work that a command has given up may hold the process: it ends all the same
setTimeout(() => process.exit(), GRACE_MS).unref()
