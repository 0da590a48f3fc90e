import { configSchema, planHost, StartFailed } from '@svc/core'
import { findSettings, here, hostOptions, RESERVED, type ServeOptions } from '@svc/cli/program'
import { printError } from '@svc/cli/command'

/**
 * `svc config schema`: writes the JSON Schema of the configuration; resolves with the exit code, 1 if a plugin could not be
 * loaded.
 */
export async function writeConfigSchema(options: ServeOptions): Promise<number> {
  const place = here()
  const config = await findSettings(options, place)
  const plan = await planHost(hostOptions(config, place.home))
  process.stdout.write(`${JSON.stringify(await configSchema(plan, RESERVED), null, 2)}\n`)
  const lost = plan.problems.filter(({ code }) => /^(PLUGIN|MANIFEST|LOCK)_/.test(code))
  if (lost.length > 0) printError(new StartFailed(lost))
  return lost.length > 0 ? 1 : 0
}
