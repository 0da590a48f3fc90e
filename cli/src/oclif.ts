import { flush, run, settings } from '@oclif/core'
import { readConfigFlag } from './config-flag.ts'
import { type CommandSource, sourcesFor } from './contributed.ts'
import { completionPlugin, contributedPlugin, type LoadCommand, ownPlugin } from './oclif-plugin.ts'
import { COMPLETION } from './summaries.ts'

// TypeScript of the repository runs as it is; oclif would look for a compiler
settings.enableAutoTranspile = false

/** Runs the command line through oclif; resolves with the exit code: 2 when the command line itself is wrong. */
export async function runOclif(argv: string[]): Promise<number> {
  const { file } = readConfigFlag(process.argv.slice(2))
  await using running = new AsyncDisposableStack()
  // help needs none of what runs a command
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

/** What oclif runs with: svc, its own plugin for completion where that is asked for, and the plugins that add commands. */
export async function pluginsFor(argv: readonly string[], sources: readonly CommandSource[], load: LoadCommand) {
  const others = await Promise.all([
    ...(argv[0] === COMPLETION ? [completionPlugin()] : []),
    ...sources.map(source => contributedPlugin(source, argv, load)),
  ])
  const own = await ownPlugin(others)
  return { root: own.root, plugins: new Map([own, ...others].map(one => [one.name, one])) }
}
