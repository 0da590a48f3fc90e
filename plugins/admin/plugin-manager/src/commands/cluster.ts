// The plugins of a cluster before a server starts: `@svc/plugin-manager/cluster`
import { problemsOf } from '@svc/cli/command'
import { codeOf } from '@svc/core'
import type { CatchUp, CaughtUp, TakenOver } from '../set.ts'
import { openClusterSet } from './change/cluster-set.ts'
import { takeOver } from './change/take-over.ts'

export const catchUp: CatchUp = async (config, signal, log) => {
  try {
    await using clusterSet = await openClusterSet(config, signal, log)
    return clusterSet && caughtUpOf(await takeOver(clusterSet.revisions, clusterSet.ctx))
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

function caughtUpOf({ result, revision, before, problems: [problem] }: TakenOver): CaughtUp | undefined {
  if (revision === undefined || result === 'current') return undefined
  const facts = { revision: revision.revision, by: revision.by, at: revision.at, before, plugins: revision.plugins }
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
}
