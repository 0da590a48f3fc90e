import { planHost, StartFailed, type SvcError } from '@svc/core'
import { hostOptions } from './host-options.ts'
import { errorFacts, printError } from './command/report-error.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings, here, sourceNames, sourcesOf } from './settings.ts'

/** `svc config check`: reports every fault; resolves with the exit code. */
export async function checkConfig(options: ServeOptions, json: boolean): Promise<number> {
  const place = here()
  const config = await findSettings(options, place)
  const { problems, notes } = await planHost(hostOptions(config, place.home))
  const good = problems.length === 0
  if (json) print(JSON.stringify({ ok: good, sources: sourcesOf(config), faults: all(problems), notes: all(notes) }, null, 2))
  else if (good) print(`The configuration is good (${sourceNames(config).join(', ') || 'defaults only'}).`)
  if (!good && !json) printError(new StartFailed(problems))
  if (!json) for (const { message, where, hint } of notes) process.stderr.write(`note: ${message} (${where}): ${hint}\n`)
  return good ? 0 : 1
}

const print = (text: string) => void process.stdout.write(`${text}\n`)
const all = (problems: readonly SvcError[]) => problems.flatMap(errorFacts)

/** Whether a file that the command line names can be read; says why where it cannot. */
export async function isReadable(file: string): Promise<boolean> {
  const { problems } = await findSettings({ config: file })
  if (problems.length > 0) printError(new StartFailed(problems))
  return problems.length === 0
}
