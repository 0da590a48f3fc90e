import { asSvcError, type PluginReport } from '@svc/core'
import { fail, type Finding, ok, warn } from '../doctor/finding.ts'
import { visible } from '@svc/cli/command'
import { reportsOf } from './everywhere.ts'
import { OLD_FIGURES, type Told } from './live.ts'

/** How plugins stand in the servers that run: one may be out there that starts well anywhere else. None where no server runs. */
export async function serverFindings(): Promise<Finding[]> {
  try {
    return (await reportsOf(() => true)).flatMap(findingsOf)
  } catch (error) {
    const { message, code, hint } = asSvcError(error, 'FAILED')
    return [warn('server', visible(`could not be asked: ${message} (${code})`), hint ?? 'svc status tells more')]
  }
}

function findingsOf({ plugins, asOf }: Told): Finding[] {
  const faults = plugins.flatMap(faultOf)
  const untold = asOf === undefined ? [] : [warn('server', `how isolated plugins stand since ${asOf} is not told`, OLD_FIGURES)]
  const found = [...faults, ...untold]
  return found.length === 0 ? [ok('server', 'all plugins run in the one that runs')] : found
}

function faultOf({ name, instance, state, error }: PluginReport): Finding[] {
  const who = visible(instance === undefined ? name : `${name} (${instance})`)
  if (state === 'quarantined')
    return [fail('server', `${who} is quarantined: its process has died too often, or has ended workers`, OUT_HINT)]
  if (state === 'restarting') return [warn('server', `${who} is being brought up again: its process has died`, ENDED)]
  if (state === 'running') return []
  const why = error === undefined ? '' : `: ${error.message} (${error.code})`
  return [fail('server', visible(`${who} has failed${why}`), error?.hint ?? 'svc reload tries again')]
}

const ENDED = 'the log line "the process of an isolated plugin has ended" says how'
const OUT_HINT = `svc reload brings it up again, svc plugins disable goes without it; ${ENDED}`
