import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Config, flush, run, settings } from '@oclif/core'
import { oneLine } from './command/text.ts'
import { readConfigFlag } from './argv.ts'
import { type CommandSource, sourcesFor } from './contributed.ts'
import { completionPlugin, contributedPlugin, type LoadCommand, ownPlugin } from './oclif-plugin.ts'
import { COMPLETION } from './summaries.ts'

// Node runs the TypeScript of the repository; oclif would look for a compiler
settings.enableAutoTranspile = false

/** Runs the command line through oclif; resolves with the exit code, 2 for a wrong command line. */
export async function runOclif(argv: string[]): Promise<number> {
  const { file } = readConfigFlag(process.argv.slice(2))
  await using running = new AsyncDisposableStack()
  // help does not load what runs a command
  const load: LoadCommand = async (source, id) => {
    const { CommandRunner } = await import('./run-contributed.ts')
    return running.use(new CommandRunner(file)).load(source, id)
  }
  const sources = await sourcesFor(argv, file)
  try {
    const result: unknown = await run(argv, await pluginsFor(argv, sources, load))
    await flush()
    return typeof result === 'number' ? result : Number(process.exitCode ?? 0)
  } catch (error) {
    const { endOf } = await import('./command-line-error.ts')
    return endOf(error, argv, sources)
  }
}

/** The options of oclif: svc, the plugins that add commands, and for completion oclif's plugin. */
export async function pluginsFor(argv: readonly string[], sources: readonly CommandSource[], load: LoadCommand) {
  const others = await Promise.all([
    ...(argv[0] === COMPLETION ? [completionPlugin()] : []),
    ...sources.map(source => contributedPlugin(source, argv, load)),
  ])
  const own = await ownPlugin(others)
  return { root: own.root, plugins: new Map([own, ...others].map(other => [other.name, other])) }
}

/**
 * Passes on the exit code of a change of the installed plugins. After a successful change, rewrites the completion scripts if
 * they exist, because they name the commands of plugins.
 */
export async function withCompletion(change: Promise<number>): Promise<number> {
  const code = await change
  if (code === 0) await refreshCompletion().catch(reportCompletion)
  return code
}

async function refreshCompletion(): Promise<void> {
  // without scripts, plugins need no description
  if (!existsSync(join((await configFor([])).cacheDir, 'autocomplete'))) return
  const config = await configFor(await sourcesFor([COMPLETION]))
  await config.runCommand('autocomplete:create')
}

const configFor = async (sources: readonly CommandSource[]) =>
  Config.load(await pluginsFor([COMPLETION], sources, () => Promise.reject(new Error('nothing runs here'))))

async function reportCompletion(error: unknown): Promise<void> {
  const { messageOf } = await import('@svc/core')
  process.stderr.write(
    `note: completion was not refreshed: ${oneLine(messageOf(error))}; run \`svc autocomplete --refresh-cache\`\n`
  )
}
