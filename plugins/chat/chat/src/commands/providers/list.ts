import { styleText } from 'node:util'
import { clipped, named, oneLine, table, visible } from '@svc/cli/command'
import type { CommandContext, ServerChoice, UnconfiguredPlugin } from '@svc/core/contracts'
import { type Health, openCatalog, type ProviderRecord } from '../catalog/open.ts'

interface ProvidersOptions extends ServerChoice {
  readonly json: boolean
}

const PROBE_MS = 5_000
const MOST_MODELS = 3

/** `svc providers list`. Resolves with the exit code 0, also if a provider is unhealthy. */
export async function listProviders(command: CommandContext, options: ProvidersOptions): Promise<number> {
  const { signal } = command
  const catalog = await openCatalog(command, options)
  const [providers, health] = await Promise.all([catalog.providers(signal), catalog.health(signal, PROBE_MS)])
  const all = providers.map(provider => ({ ...provider, ...stateOf(health[provider.name]) }))
  // the plugins of another machine are not installed in this home
  const idle = options.url === undefined ? await command.unconfigured('providers') : []
  const facts = { from: catalog.of, providers: all, not_configured: idle }
  command.print(options.json ? JSON.stringify(facts, null, 2) : listText(all, catalog.of, idle))
  return 0
}

type Listed = ProviderRecord & { readonly healthy: boolean | null; readonly error?: string }

const stateOf = (health: Health | undefined) => ({
  healthy: health?.healthy ?? null,
  ...(health?.error === undefined ? {} : { error: health.error }),
})

function listText(all: readonly Listed[], of: string, idle: readonly UnconfiguredPlugin[]): string {
  const rows = all.map(({ name, models, features, healthy }) => [
    name,
    healthy === null ? '' : healthy ? 'healthy' : 'unhealthy',
    Object.entries(features)
      .flatMap(([feature, has]) => (has ? [feature] : []))
      .join(', '),
    modelsText(models),
  ])
  const [head = '', ...lines] = table([['PROVIDER', 'STATE', 'FEATURES', 'MODELS'], ...rows]).split('\n')
  const errors = all.flatMap(({ name, error }) => (error === undefined ? [] : [named(name, clipped(oneLine(error), 200))]))
  const paint = (colour: 'bold' | 'red') => (text: string) => styleText(colour, text, { stream: process.stdout })
  const shown = lines.map((line, at) => (all[at]?.healthy === false ? paint('red')(line) : line))
  return [
    `${all.length} ${all.length === 1 ? 'provider' : 'providers'} of ${of}`,
    '',
    paint('bold')(head),
    ...shown,
    ...errors.map(paint('red')),
    ...idle.map(unconfiguredPlugin =>
      visible(
        `${unconfiguredPlugin.type}: not configured (${unconfiguredPlugin.plugin} is installed): ${unconfiguredPlugin.hint}`
      )
    ),
  ].join('\n')
}

function modelsText(models: readonly string[]): string {
  const rest = models.length - MOST_MODELS
  return [...models.slice(0, MOST_MODELS).map(oneLine), ...(rest > 0 ? [`${rest} more`] : [])].join(', ')
}
