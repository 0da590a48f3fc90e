import type { Log, SlotView } from '@svc/core'
import type { Provider } from '@svc/core/contracts'
import { partsOf } from './costs.ts'
import type { ModelsConfig } from './settings.ts'

/** Providers come and go, so a name that leads nowhere is worth a warning, no more. */
export function warnOfNames({ aliases, prices }: Readonly<ModelsConfig>, providers: SlotView<Provider>, log: Log): undefined {
  const strange = (provider: string) => !providers.has(provider)
  for (const [alias, { provider, model }] of Object.entries(aliases)) {
    if (strange(provider)) log.warn({ alias, provider, known: providers.names() }, `models.aliases.${alias}: no such provider`)
    else if (Object.hasOwn(aliases, model))
      log.warn({ alias, model }, `models.aliases.${alias} leads to an alias: it is taken as a model's name`)
  }
  const unpriced = Object.keys(prices).filter(key => strange(partsOf(key).provider))
  if (unpriced.length > 0) log.warn({ unpriced, known: providers.names() }, 'models.prices: no such provider')
}
