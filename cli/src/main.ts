import { readConfigFlag } from './argv.ts'
import { endWithReader } from './signals.ts'
import { runServe } from './run-serve.ts'
import { parseServe } from './serve-flags.ts'
import { reservedFor } from './summaries.ts'

/** Runs the command line; resolves with the exit code. Parses `svc serve` without oclif, for a fast start. */
async function main(words: string[]): Promise<number> {
  endWithReader()
  const { file, argv } = readConfigFlag(words)
  // a command of svc works without the file and reports its problems itself
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

/** Help, the version, `drain`, `reload` and `status` read no configuration of the project. */
const readsProject = (argv: readonly string[]) =>
  argv.length > 0 && !['--version', 'drain', 'reload', 'status'].includes(argv[0]!) && !argv.includes('--help')

const GRACE_MS = 1_000

process.exitCode = await main(process.argv.slice(2))
// abandoned work must not keep the process alive after its output is written
const end = () => void (isWriting() ? setTimeout(end, GRACE_MS) : process.exit())
const isWriting = () => process.stdout.writableLength + process.stderr.writableLength > 0
setTimeout(end, GRACE_MS).unref()
