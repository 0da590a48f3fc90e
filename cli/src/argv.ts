import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { COMPLETION, isOwn } from './summaries.ts'

/** A command line without the configuration file that it names. */
interface Split {
  readonly file?: string
  readonly rest: string[]
}

const NAMES = ['-c', '--config']

/** Takes `-c <file>`, `--config <file>` and `--config=<file>` off a command line; what stands behind `--` is not looked at. The last one counts. */
function split(argv: readonly string[]): Split {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const rest: string[] = []
  let file: string | undefined
  for (let at = 0; at < end; at++) {
    const word = argv[at]!
    if (NAMES.includes(word) && at + 1 < end) file = argv[++at]
    else if (word.startsWith('--config=')) file = word.slice('--config='.length)
    else rest.push(word)
  }
  return { ...(file === undefined ? {} : { file }), rest: [...rest, ...argv.slice(end)] }
}

/**
 * The command line as the rest of svc takes it: `-c file` stands behind the command as `--config file`, wherever it was typed. `file` is there where the
 * command is not one of svc itself: a plugin's is found through that very file.
 */
export function readConfigFlag(argv: readonly string[]): { readonly file?: string; readonly argv: string[] } {
  const { file, rest } = split(argv)
  const [command = ''] = rest
  if (file === undefined) return { argv: [...argv] }
  // oclif's own command has no such flag
  if (command === COMPLETION) return { file, argv: rest }
  if (isOwn(rest)) return { argv: argv[0] === command ? [...argv] : behindCommand(rest, file) }
  // help of svc itself, which has no such flag
  return { file, argv: /^(-|$)/.test(command) ? rest : behindCommand(rest, file) }
}

/** `svc -c file chat hello` is `svc chat hello --config file`. */
function behindCommand(rest: readonly string[], file: string): string[] {
  const end = rest.includes('--') ? rest.indexOf('--') : rest.length
  return [...rest.slice(0, end), '--config', file, ...rest.slice(end)]
}

/** Where the person stands: npm runs a script in the folder of its package, so that `npm run svc` from another folder would take a path for one of the repository. */
export function callerFolder(): string {
  const { npm_lifecycle_event: script, INIT_CWD: called } = process.env
  return script === 'svc' && called !== undefined && existsSync(called) ? called : process.cwd()
}

/** A path of the command line, whole. */
export const fromCaller = (path: string): string => resolve(callerFolder(), path)

/** A path that begins with a dot, whole; all else as it is. */
export const dottedFromCaller = (spec: string): string => (/^\.{1,2}(\/|$)/.test(spec) ? fromCaller(spec) : spec)
