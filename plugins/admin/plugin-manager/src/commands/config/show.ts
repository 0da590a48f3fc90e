import { styleText } from 'node:util'
import { errorFacts, printError, table } from '@svc/cli/command'
import { findSettings, here, hostOptions, RESERVED, SERVED, type ServeOptions } from '@svc/cli/program'
import {
  type ConfigRow,
  configRows,
  configSchema,
  type DocumentedKey,
  documentedKeys,
  nearest,
  type Plan,
  planHost,
  pluginRows,
  StartFailed,
  type SvcError,
  svcError,
} from '@svc/core'

const KNOWN = { reserved: RESERVED, served: SERVED }

const REFUSED = /^CONFIG_(NOT_TRUSTED|FOREIGN|AMBIGUOUS)$/

/** `svc config show`: prints values and sources; resolves with the exit code. */
export async function showConfig(options: ServeOptions, asked: { key: string | undefined; json: boolean }): Promise<number> {
  const place = here()
  const settings = await findSettings(options, place)
  // without the refused file, the other values would not be in effect
  const refused = settings.problems.filter(({ code }) => REFUSED.test(code))
  if (refused.length > 0 && !asked.json) {
    printError(new StartFailed(refused))
    return 1
  }
  const plan = await planHost(hostOptions(settings, place.home))
  const rows = rowsOf(plan, asked.key)
  const plugins = isBelow('plugins', asked.key) ? pluginRows(plan) : []
  const text = asked.json ? jsonText(rows, plugins, plan.problems) : plainText(rows, plugins)
  process.stdout.write(`${text}\n`)
  if (plan.problems.length > 0) printError(new StartFailed(plan.problems))
  return plan.problems.length > 0 ? 1 : 0
}

/** The values in effect. For a requested key also its documentation, even if it is not set. Throws CONFIG_UNKNOWN_KEY. */
function rowsOf(plan: Plan, asked: string | undefined): ConfigRow[] {
  const rows = configRows(plan, KNOWN)
  if (asked === undefined) return rows
  const documented = documentedKeys(plan, KNOWN)
  const set = rows.filter(row => isBelow(row.key, asked))
  const known = documented.filter(documentedKey => isBelow(documentedKey.key, asked))
  if (set.length + known.length === 0)
    throw keyUnknown(
      asked,
      [...rows, ...documented].flatMap(({ key }) => prefixesOf(key))
    )
  // a section shows its values; only a section without values shows its possible keys
  const unset = set.length > 0 ? [] : known.filter(documentedKey => documentedKey.key !== 'plugins').map(unsetRow)
  const words = new Map(known.map(documentedKey => [documentedKey.key, documentedKey.description]))
  return [...set.map(row => describe(row, words.get(row.key))), ...unset]
}

const unsetRow = ({ key, description, unused }: DocumentedKey): ConfigRow => ({
  key,
  description,
  source: 'not set',
  ...(unused ? { unused } : {}),
})
const describe = (row: ConfigRow, description: string | undefined): ConfigRow => ({
  ...row,
  ...(description === undefined ? {} : { description }),
})

/** `a.b.c`, `a.b`, `a`: the keys that can be requested. */
const prefixesOf = (key: string) => key.split('.').map((_, at, words) => words.slice(0, at + 1).join('.'))

const isBelow = (key: string, asked: string | undefined) => asked === undefined || key === asked || key.startsWith(`${asked}.`)

type PluginRows = ReturnType<typeof pluginRows>

const jsonText = (values: readonly ConfigRow[], plugins: PluginRows, problems: readonly unknown[]) =>
  JSON.stringify({ values, plugins, problems: problems.flatMap(errorFacts) }, null, 2)

function plainText(rows: readonly ConfigRow[], plugins: PluginRows): string {
  const dim = (text: string) => styleText('gray', text, { stream: process.stdout })
  const lines = rows.map(row => [
    row.key,
    JSON.stringify(row.value) ?? '',
    `${row.source}${row.unused ? ' (no plugin acts on it)' : ''}`,
    row.description ?? '',
  ])
  const list = plugins.map(plugin => [`plugins ${plugin.name}`, '', plugin.source])
  return table([...lines, ...list].map(([key = '', value = '', source = '', words = '']) => [key, value, dim(source), words]))
}

function keyUnknown(key: string, known: readonly string[]): SvcError {
  const near = nearest(key, known)
  const hint = `${near === undefined ? '' : `did you mean "${near}"? `}Run \`svc config show\` to list the keys that are set. See docs/reference/configuration.md for all keys`
  return svcError('CONFIG_UNKNOWN_KEY', `${key} is not a key of this configuration`, { hint })
}

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
