import assert from 'node:assert/strict'
import type { ModelRequest, Provider } from '@svc/core/contracts'
import { abortable, assertPlain, caseMaker, frozen, skipped } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { assertCode, fitting, soundEnd } from './made-up-calls.ts'
import type { Thing } from './plugin-host.ts'
import type { PluginKitOptions } from './plugin-samples.ts'
import { checkOrder, readAll } from './provider-events.ts'

const ANSWERS = 'ends made-up requests: with events in their order, or with MODEL_FAILED'

/** What can be asked of a provider whose author gives no requests. */
export function providerCases({ options, permissions, open }: Thing<Provider>): KitCase[] {
  const make = caseMaker(open)
  const describing = make('tells its features and models in plain data', async ({ item }) => {
    assertPlain(item.features, 'features')
    const { value, error } = await soundEnd(item.models(abortable().use), 'models')
    if (error !== undefined) assertCode(error, ['MODEL_FAILED'], 'models')
    else assert.ok(value!.open || value!.models.length > 0, 'a closed list names a model at least')
  })
  if ((permissions.network?.length ?? 0) > 0) return [describing, skipped(ANSWERS, 'a network')]
  return [
    describing,
    make(ANSWERS, async ({ item }) => {
      const { models } = await item.models(abortable().use)
      for (const request of requests(models[0]?.id ?? 'made-up', options)) {
        const { value, error } = await soundEnd(readAll(item, frozen(request)), JSON.stringify(request).slice(0, 200))
        if (value) checkOrder(value)
        else assertCode(error, ['MODEL_FAILED'], 'a made-up request')
      }
    }),
  ]
}

const requests = (model: string, options: PluginKitOptions): ModelRequest[] =>
  fitting({ type: 'array', minItems: 1, maxItems: 3, items: { type: 'string' } }, options).map(texts => ({
    model,
    messages: (texts as string[]).map((text, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      parts: [{ type: 'text' as const, text }],
    })),
  }))
