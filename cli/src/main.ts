import { readConfigFlag } from './argv.ts'
import { endWithReader } from './signals.ts'
import { parseServe, runServe } from './serve-flags.ts'
import { reservedFor } from './summaries.ts'

/** Runs the command line; resolves with the exit code. `svc serve` is read without oclif, because a server must start fast. */
async function main(words: string[]): Promise<number> {
  endWithReader()
  const { file, argv } = readConfigFlag(words)
  // a command that came with svc is there without the file, and says itself what is wrong with it
  if (
    file !== undefined &&
    reservedFor(argv) === undefined &&
    !(await (await import('./command-line-error.ts')).isReadable(file))
  )
    return 1
  if (file === undefined && isAtTerminal() && readsProject(argv)) await (await import('./ask-trust.ts')).askForTrust()
  const options = parseServe(argv)
  if (options) return runServe(options)
  return (await import('./oclif.ts')).runOclif(argv)
}

const isAtTerminal = () => process.stdin.isTTY && process.stderr.isTTY

/** Not of the project: help, the version, and what only asks a server that runs. */
const readsProject = (argv: readonly string[]) =>
  argv.length > 0 && !['--version', 'reload', 'status'].includes(argv[0]!) && !argv.includes('--help')

const GRACE_MS = 1_000

process.exitCode = await main(process.argv.slice(2))
// work that a command has given up may hold the process: it ends all the same, once its reader has all
const end = () => void (isWriting() ? setTimeout(end, GRACE_MS) : process.exit())
const isWriting = () => process.stdout.writableLength + process.stderr.writableLength > 0
setTimeout(end, GRACE_MS).unref()
