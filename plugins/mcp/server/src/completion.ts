import type { CompleteResult } from '@modelcontextprotocol/server'
import type { SlotView, Use } from '@svc/core'
import type { Completions, Prompt, Resource } from '@svc/core/contracts'
import { exchangeOf, type Sdk, type Server } from './sdk.ts'
import { wordsOf } from './words.ts'

/** The protocol allows no more. */
const MOST = 100

interface Completable {
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
}

/** `completion/complete`: of prompts by name, of resources by template. Who has nothing to say completes to nothing. */
export function completing(server: Server, sdk: Sdk, { resources, prompts }: Completable, own: Use | undefined): void {
  const { ProtocolError, ProtocolErrorCode } = sdk
  const found = (ref: { readonly type: string; readonly name?: string; readonly uri?: string }): Resource | Prompt => {
    const one = ref.type === 'ref/prompt' ? prompts.get(ref.name ?? '') : templateOf(resources, ref.uri)
    if (one) return one
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `there is nothing to complete for ${(ref.name ?? ref.uri ?? '').slice(0, 200)}`
    )
  }
  server.setRequestHandler('completion/complete', async ({ params }, context) => {
    const one = found(params.ref)
    const use = { ...exchangeOf(context, own).use, signal: context.mcpReq.signal }
    const { name, value } = params.argument
    try {
      return told((await one.complete?.(name, value, params.context?.arguments ?? {}, use)) ?? { values: [] })
    } catch (error) {
      use.signal.throwIfAborted()
      throw new ProtocolError(ProtocolErrorCode.InternalError, wordsOf(error, 'It could not be completed.'))
    }
  })
}

const templateOf = (resources: SlotView<Resource>, uri: string | undefined) =>
  resources.entries().find(([, one]) => one.uriTemplate !== undefined && one.uriTemplate === uri)?.[1]

function told({ values, total = values.length }: Completions): CompleteResult {
  return { completion: { values: values.slice(0, MOST), total, hasMore: total > Math.min(values.length, MOST) } }
}
