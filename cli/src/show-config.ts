import { styleText } from 'node:util'
import { planHost, StartFailed } from '@svc/core'
import { type ConfigRow, configRows, pluginRows } from './config-report.ts'
import { keyUnknown } from './errors.ts'
import { factsOf, printError } from './report-error.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings, here, hostOptions } from './settings.ts'
import { table } from './text.ts'

/** `svc config show`: prints values and sources; resolves with the exit code. */
export async function showConfig(options: ServeOptions, asked: { key: string | undefined; json: boolean }): Promise<number> {
  const place = here()
  const plan = await planHost(hostOptions(await findSettings(options, place), place.home))
  const rows = configRows(plan).filter(row => isBelow(row.key, asked.key))
  const plugins = isBelow('plugins', asked.key) ? pluginRows(plan) : []
  if (asked.key !== undefined && rows.length + plugins.length === 0) throw keyUnknown(asked.key)
  const text = asked.json ? jsonText(rows, plugins, plan.problems) : plainText(rows, plugins)
  process.stdout.write(`${text}\n`)
  if (plan.problems.length > 0) printError(new StartFailed(plan.problems))
  return plan.problems.length > 0 ? 1 : 0
}

const isBelow = (key: string, asked: string | undefined) => asked === undefined || key === asked || key.startsWith(`${asked}.`)

type PluginRows = ReturnType<typeof pluginRows>

const jsonText = (values: readonly ConfigRow[], plugins: PluginRows, problems: readonly unknown[]) =>
  JSON.stringify({ values, plugins, faults: problems.flatMap(factsOf) }, null, 2)

function plainText(rows: readonly ConfigRow[], plugins: PluginRows): string {
  const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
  const lines = rows.map(row => [
    row.key,
    JSON.stringify(row.value) ?? '',
    `${row.source}${row.unused ? ' (no plugin acts on it)' : ''}`,
  ])
  const list = plugins.map(one => [`plugins ${one.name}`, '', one.source])
  return table([...lines, ...list].map(([key = '', value = '', source = '']) => [key, value, dim(source)]))
}
