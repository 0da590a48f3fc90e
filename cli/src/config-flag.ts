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
 * The command line as the rest of svc takes it. A command of svc itself has the option; a plugin's and oclif's completion do not, and the first is found through that very file: so it is
 * taken off, and `file` tells it.
 */
export function readConfigFlag(argv: readonly string[]): { readonly file?: string; readonly argv: string[] } {
  const { file, rest } = split(argv)
  const [command = ''] = rest
  if (file !== undefined && (command === COMPLETION || !isOwn(rest))) return { file, argv: rest }
  return { argv: file === undefined || argv[0] === command ? [...argv] : behindCommand(rest, file) }
}

/** `svc -c file chat hello` is `svc chat hello -c file`. */
function behindCommand(rest: readonly string[], file: string): string[] {
  const end = rest.includes('--') ? rest.indexOf('--') : rest.length
  return [...rest.slice(0, end), '-c', file, ...rest.slice(end)]
}
