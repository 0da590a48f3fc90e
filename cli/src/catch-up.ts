import { codeOf, type Config, get, type Log, type LogOptions } from '@svc/core'
import type { CatchUp } from '@svc/plugin-manager/installed'
import { problemsOf } from './command/errors.ts'
import { isPostgresUrl } from './curated.ts'
import type { ServeOptions } from './serve-flags.ts'

/** That package uses this one, so the compiler builds it later and must not follow the import. */
const CLUSTER: string = '@svc/plugin-manager/cluster'

/** What a start has found out about the plugins of its cluster. */
export interface CaughtUp {
  /** Whether other plugins are installed than before. */
  readonly hasChanged: boolean
  /** Logs it, once there is a log. */
  report(log: Log): void
}

/**
 * Before a server of a cluster starts: takes over the plugins that were changed on other nodes. Throws only if PostgreSQL does
 * not answer: the start would wait for it once more.
 */
export async function catchUpWithCluster(
  config: Config,
  { linked }: ServeOptions,
  signal: AbortSignal,
  log: LogOptions
): Promise<CaughtUp | undefined> {
  if (linked !== undefined || !isPostgresUrl(get(config.value, ['store', 'url']))) return undefined
  try {
    const { catchUp } = (await import(CLUSTER)) as { catchUp: CatchUp }
    const found = await catchUp(config, signal, log)
    if (found?.revision === undefined || found.result === 'current') return undefined
    const { result, revision, before, problems } = found
    const facts = { revision: revision.revision, by: revision.by, at: revision.at, before, plugins: revision.plugins }
    const [problem] = problems
    return {
      hasChanged: result === 'taken',
      report: log =>
        result === 'taken'
          ? log.info(facts, `took over revision ${revision.revision} of the plugins of the cluster`)
          : log.error(
              { ...facts, err: problem },
              `cannot take over revision ${revision.revision} of the plugins of the cluster, so the former ones stay in effect`
            ),
    }
  } catch (err) {
    if (problemsOf(err).some(({ code }) => code === 'POSTGRES_UNAVAILABLE')) throw err
    // the running server compares again
    const isBusy = codeOf(err) === 'PLUGIN_SET_BUSY'
    return {
      hasChanged: false,
      report: log => isBusy || log.warn({ err }, 'failed to compare the plugins with those of the cluster'),
    }
  }
}
