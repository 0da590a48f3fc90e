import { flush, type Interfaces, run, settings } from '@oclif/core'
import { codeOf, messageOf, type SvcError } from '@svc/core'
import { readConfigFlag } from './config-flag.ts'
import { type CommandSource, sourcesFor } from './contributed.ts'
import { commandLineInvalid, commandUnknown, isUsage } from './errors.ts'
import { contributedPlugin, ownPlugin, oclifPlugin } from './oclif-plugin.ts'
import { printError } from './report-error.ts'
import { CommandRunner } from './run-contributed.ts'
import { SUMMARIES } from './summaries.ts'

const USAGE = 2

// TypeScript of the repository runs as it is; oclif would look for a compiler
settings.enableAutoTranspile = false

/** Runs the command line through oclif; resolves with the exit code: 2 when the command line itself is wrong. */
export async function runOclif(argv: string[]): Promise<number> {
  const { file } = readConfigFlag(process.argv.slice(2))
  await using runner = new CommandRunner(file)
  const sources = await sourcesFor(argv, file)
  try {
    const own = await ownPlugin()
    const others = await Promise.all(sources.map(one => contributedPlugin(one, argv, (source, id) => runner.load(source, id))))
    const plugins = [own, await oclifPlugin('@oclif/plugin-autocomplete'), ...others]
    const result: unknown = await run(argv, { root: own.root, plugins: byName(plugins) })
    await flush()
    return typeof result === 'number' ? result : Number(process.exitCode ?? 0)
  } catch (error) {
    return endOf(error, argv, sources)
  }
}

const byName = (plugins: readonly Interfaces.Plugin[]) => new Map(plugins.map(one => [one.name, one]))

/** Exit code 2 is for the command line itself; what oclif throws carries its code, an ordinary failure does not. */
function endOf(error: unknown, argv: readonly string[], sources: readonly CommandSource[]): number {
  const exit = (error as { oclif?: { exit?: number } }).oclif?.exit
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  const known = [...Object.keys(SUMMARIES), ...sources.flatMap(one => one.ids)]
  printError(exit === USAGE ? usageError(messageOf(error), argv, known) : error)
  return exit ?? (isUsage(codeOf(error)) ? USAGE : 1)
}

/** oclif's words for what is wrong with a command line; of help for what is no command it calls no hook. */
function usageError(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const [, id] = /^Command (\S+) not found\.$/.exec(message) ?? []
  return id === undefined
    ? commandLineInvalid(message.replace(/\nSee more help with --help$/, ''), argv, known)
    : commandUnknown(id.split(':'), argv, known)
}
