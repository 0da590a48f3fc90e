import { main } from './program.ts'

const GRACE_MS = 1_000

process.exitCode = await main(process.argv.slice(2))
// work that a command has given up may hold the process: it ends all the same, once its reader has all
const end = () => void (isWriting() ? setTimeout(end, GRACE_MS) : process.exit())
const isWriting = () => process.stdout.writableLength + process.stderr.writableLength > 0
setTimeout(end, GRACE_MS).unref()
