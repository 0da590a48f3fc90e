import { readConfigFlag } from './config-flag.ts'
import { endWithReader } from './reader-gone.ts'
import { parseServe } from './serve-flags.ts'

/** Runs the command line; resolves with the exit code. What is asked most takes a way that does not load oclif and ends the same. */
export async function main(words: string[]): Promise<number> {
  endWithReader()
  const { file, argv } = readConfigFlag(words)
  if (file !== undefined && !(await (await import('./check-config.ts')).isReadable(file))) return 1
  if (file === undefined && isAtTerminal() && readsProject(argv)) await (await import('./ask-trust.ts')).askForTrust()
  const options = parseServe(argv)
  if (options) return (await import('./serve-command.ts')).runServe(options)
  if (isRootHelp(argv) && (await (await import('./root-help.ts')).printRootHelp(process.stdout, file))) return 0
  return (await import('./oclif.ts')).runOclif(argv)
}

const isAtTerminal = () => process.stdin.isTTY && process.stderr.isTTY

/** Not of the project: help, the version, and what only asks a server that runs. */
const readsProject = (argv: readonly string[]) =>
  argv.length > 0 && !['--version', 'reload', 'status'].includes(argv[0]!) && !argv.includes('--help')

const isRootHelp = (argv: readonly string[]) => argv.length === 0 || (argv.length === 1 && argv[0] === '--help')
