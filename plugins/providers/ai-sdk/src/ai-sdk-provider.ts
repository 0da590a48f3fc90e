import type { ModelRequest, Provider } from '@svc/core/contracts'
import { type ConfiguredModel, cutShort, EventStream, estimateTokens, modelList } from '@svc/provider-http'
import { Answer } from './answer.ts'
import { toCallOptions } from './call.ts'
import { createEvents } from './events.ts'
import type { Failures } from './failure.ts'
import type { GuardedFetch } from './fetch.ts'
import { toStream } from './generated.ts'
import type { LanguageModel, Metadata, Warning } from './sdk.ts'

/** What a provider is made of. */
export interface AiSdkParts {
  /** Name of the entry. */
  readonly name: string
  /** Those of the configuration; without them any id is passed on. */
  readonly models: readonly ConfiguredModel[] | undefined
  readonly providerOptions: Metadata | undefined
  readonly upstream: GuardedFetch
  /** The plugin's. */
  readonly signal: AbortSignal
  readonly makeModel: (id: string) => LanguageModel
  readonly failures: Failures
  readonly warn: (warnings: readonly Warning[]) => void
}

/** The models of an AI SDK package as a provider of ours. */
export function createAiSdkProvider(parts: AiSdkParts): Provider {
  const { name, models, providerOptions, upstream, signal, makeModel, failures, warn } = parts
  return {
    features: { tool_calling: true, streaming: true, vision: true },
    models: modelList({ configured: models, load: async () => [], open: true, signal }),
    async countTokens(request, use) {
      use.signal.throwIfAborted()
      return estimateTokens(request)
    },
    chat(request: ModelRequest, use) {
      const events = new EventStream(use.signal)
      const taken = createEvents({ emit: events.push, warn, failureOf: failures.streamed, cut: () => cutShort(name) })
      const ask = async (ending: AbortSignal) => {
        const model = makeModel(request.model)
        const call = { version: model.specificationVersion, provider: name, providerOptions, signal: ending }
        const options = toCallOptions(request, call, use)
        return request.gathered && model.doGenerate ? toStream(await model.doGenerate(options)) : model.doStream(options)
      }
      return events.from(new Answer({ events, taken, ask, failureOf: failures.thrown }))
    },
    probe: use => upstream.probe(use.signal),
  }
}
