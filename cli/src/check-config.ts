import { basename } from 'node:path'
import { codeOf, planHost, StartFailed } from '@svc/core'
import { factsOf, printError } from './report-error.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings, here, hostOptions, sourcesOf } from './settings.ts'

/** `svc config check`: reports every fault; resolves with the exit code. */
export async function checkConfig(options: ServeOptions, json: boolean): Promise<number> {
  const { error, sources } = await faultOf(options)
  if (json)
    process.stdout.write(
      `${JSON.stringify({ ok: error === undefined, sources, faults: error === undefined ? [] : factsOf(error) }, null, 2)}\n`
    )
  else if (error !== undefined) printError(error)
  else
    process.stdout.write(
      `The configuration is good (${sources.map(source => basename(source)).join(', ') || 'defaults only'}).\n`
    )
  return error === undefined ? 0 : 1
}

async function faultOf(options: ServeOptions): Promise<{ error?: unknown; sources: string[] }> {
  const place = here()
  try {
    const config = await findSettings(options, place)
    const sources = sourcesOf(config)
    const { problems } = await planHost(hostOptions(config, place.home))
    return problems.length > 0 ? { error: new StartFailed(problems), sources } : { sources }
  } catch (error) {
    // A file that cannot be read is what this command is asked to find.
    if (codeOf(error)?.startsWith('CONFIG_')) return { error, sources: [] }
    throw error
  }
}
