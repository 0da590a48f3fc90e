import { randomUUID } from 'node:crypto'
import { type CallContext, codeOf, type Log } from '@svc/core'
import type { Json, ModelMessage, Space, Store, StoredMessage, StoreOp, ToolCallPart } from '@svc/core/contracts'

/**
 * The steps of agents that clients do not see: they are kept under the ids of the client's calls, for the principal, and inserted
 * when the client sends the results.
 */
export interface HiddenSteps {
  /** Keeps the messages of a turn that ended with these calls. Returns the calls under new ids, which no other turn has. */
  keep(calls: readonly ToolCallPart[], made: readonly StoredMessage[], ctx: CallContext): Promise<ToolCallPart[]>
  /** The messages with the hidden steps in place of the messages that only show their calls. */
  inserted(messages: readonly ModelMessage[], ctx: CallContext): Promise<readonly ModelMessage[]>
}

const COLLECTION = 'named_models_steps'

export const SPACE: Space = {
  name: 'named_models',
  version: 1,
  collections: { [COLLECTION]: { indexes: { until: ['until'] } } },
}

/** Time for which steps are kept. */
const KEPT_MS = 3_600_000
/** The store takes values of up to 16 MiB. Longer steps are not kept: the agent then sees what the client sends. */
const MOST_BYTES = 4 * 1024 * 1024
/** Expired steps that one `keep` deletes. */
const SWEPT = 100
const ID = /^svc_[\da-f]{32}_\d{1,3}$/

/** A record: the messages of one turn. */
interface Steps {
  readonly owner: string
  /** Unix time in milliseconds. */
  readonly until: number
  /** The ids of the client's calls as the model knows them, by their position. */
  readonly ids: readonly string[]
  readonly made: readonly StoredMessage[]
}

export function createHiddenSteps(store: Store, log: Log): HiddenSteps {
  const read = async (key: string, ctx: CallContext): Promise<Steps | undefined> => {
    const record = await store.get(COLLECTION, key, ctx)
    const steps = record?.value as unknown as Steps | undefined
    return steps && steps.owner === ctx.principal.id && steps.until > Date.now() ? steps : undefined
  }

  return {
    async keep(calls, made, ctx) {
      const key = randomUUID().replaceAll('-', '')
      const steps: Steps = { owner: ctx.principal.id, until: Date.now() + KEPT_MS, ids: calls.map(call => call.id), made }
      const value = steps as unknown as Json
      if (JSON.stringify(value).length > MOST_BYTES) {
        log.warn(
          { request_id: ctx.requestId },
          'the steps of an agent are too long to keep until the client returns its tool results'
        )
        return [...calls]
      }
      const ops: StoreOp[] = [{ op: 'put', collection: COLLECTION, key, value }, ...(await expired(store, ctx))]
      await store.batch(ops, {}, ctx)
      return calls.map((call, at) => ({ ...call, id: `svc_${key}_${at}` }))
    },

    async inserted(messages, ctx) {
      if (!messages.some(message => keyIn(message) !== undefined)) return messages
      const found: ModelMessage[] = []
      let steps: Steps | undefined
      for (const message of messages) {
        const key = keyIn(message)
        const next = key === undefined ? undefined : await read(key, ctx)
        if (next) {
          steps = next
          found.push(...next.made)
        } else if (steps && message.role === 'tool') addResults(found, message, steps)
        else {
          if (message.role !== 'tool') steps = undefined
          found.push(message)
        }
      }
      return found
    },
  }
}

/** The key of the steps that an assistant message shows the calls of. */
function keyIn({ role, parts }: ModelMessage): string | undefined {
  if (role !== 'assistant') return undefined
  const call = parts.find(part => part.type === 'tool_call' && ID.test(part.id))
  return call?.type === 'tool_call' ? call.id.split('_')[1] : undefined
}

/** Adds results of the client to those of svc: one message has the results of all calls of a step. */
function addResults(messages: ModelMessage[], { parts }: ModelMessage, { ids }: Steps): void {
  const own = parts.map(part => {
    if (part.type !== 'tool_result' || !ID.test(part.id)) return part
    return { ...part, id: ids[Number(part.id.split('_')[2])] ?? part.id }
  })
  const last = messages.at(-1)
  if (last?.role === 'tool') messages[messages.length - 1] = { ...last, parts: [...last.parts, ...own] }
  else messages.push({ role: 'tool', parts: own })
}

/** Operations that delete expired steps. A failure to find them only delays their end. */
async function expired(store: Store, ctx: CallContext): Promise<StoreOp[]> {
  try {
    const { records } = await store.range(COLLECTION, { index: 'until', to: Date.now(), limit: SWEPT }, ctx)
    return records.map(({ key }) => ({ op: 'delete', collection: COLLECTION, key }))
  } catch (error) {
    if (codeOf(error)?.startsWith('STORE_')) return []
    throw error
  }
}
