import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { COMPLETION, isOwn } from './summaries.ts'

/** A command line without the option for the configuration file. */
interface Split {
  readonly file?: string
  readonly rest: string[]
}

const NAMES = ['-c', '--config']

/** Removes `-c <file>`, `--config <file>` and `--config=<file>` from a command line, up to `--`. The last option counts. */
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
 * Moves `-c <file>` behind the command as `--config <file>`. `file` is set for commands of plugins, because svc finds the
 * plugin through that file.
 */
export function readConfigFlag(argv: readonly string[]): { readonly file?: string; readonly argv: string[] } {
  const { file, rest } = split(argv)
  const [command = ''] = rest
  if (file === undefined) return { argv: [...argv] }
  // oclif's own command has no such flag
  if (command === COMPLETION) return { file, argv: rest }
  if (isOwn(rest)) return { argv: argv[0] === command ? [...argv] : behindCommand(rest, file) }
  // the help of svc itself has no such flag
  return { file, argv: /^(-|$)/.test(command) ? rest : behindCommand(rest, file) }
}

/** `svc -c file chat hello` is `svc chat hello --config file`. */
function behindCommand(rest: readonly string[], file: string): string[] {
  const end = rest.includes('--') ? rest.indexOf('--') : rest.length
  return [...rest.slice(0, end), '--config', file, ...rest.slice(end)]
}

/** The folder of the user. npm runs a script in the folder of its package, so `npm run svc` would resolve paths there. */
export function callerFolder(): string {
  const { npm_lifecycle_event: script, INIT_CWD: called } = process.env
  return script === 'svc' && called !== undefined && existsSync(called) ? called : process.cwd()
}

/** Resolves a path of the command line. */
export const fromCaller = (path: string): string => resolve(callerFolder(), path)

/** Resolves a path that begins with a dot, and returns everything else unchanged. */
export const dottedFromCaller = (spec: string): string => (/^\.{1,2}(\/|$)/.test(spec) ? fromCaller(spec) : spec)
