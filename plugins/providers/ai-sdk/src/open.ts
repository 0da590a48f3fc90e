import type { Log } from '@svc/core'
import type { Provider } from '@svc/core/contracts'
import { createHide, readKey, secretsOf } from '@svc/provider-http'
import { createAiSdkProvider } from './ai-sdk-provider.ts'
import type { AiSdkConfig } from './config.ts'
import { createFailures } from './failure.ts'
import { createGuardedFetch } from './fetch.ts'
import { openPackage, type Packages } from './package.ts'
import { environmentSecrets } from './secrets.ts'
import { createWarn } from './warnings.ts'

/** What an entry is opened with. */
export interface OpenParts {
  readonly name: string
  readonly config: AiSdkConfig
  readonly log: Log
  readonly signal: AbortSignal
  readonly packages: Packages
}

interface Opened {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

/** Opens an entry: reads its key, loads its package, makes its provider. Throws PROVIDER_KEY, PROVIDER_CONFIG, PROVIDER_PACKAGE. */
export async function openProvider(parts: OpenParts): Promise<Opened> {
  const { name, config, log, signal, packages } = parts
  const { base_url: baseURL, headers = {}, models, provider_options: providerOptions } = config
  const apiKey = await readKey(config, { provider: name, required: false })
  const hide = createHide(secretsOf([...(apiKey === undefined ? [] : [apiKey]), ...environmentSecrets()], headers))
  const upstream = createGuardedFetch(name, baseURL)
  const options = {
    ...config.options,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(baseURL === undefined ? {} : { baseURL }),
    headers,
    fetch: upstream.fetch,
  }
  const first = models?.[0]
  const model = typeof first === 'object' ? first.id : first
  const makeModel = await openPackage({ package: config.package, export: config.export, options, model, hide }, packages)
  const note = (words: string) => log.warn({ provider: name, words }, 'the package of a provider failed')
  const failures = createFailures({ provider: name, hide, note })
  const warn = createWarn(name, log, hide)
  const provider = createAiSdkProvider({ name, models, providerOptions, upstream, signal, makeModel, failures, warn })
  return { provider, close: () => upstream.close() }
}
