import { type CallContext, codeOf } from '@svc/core'
import type { Json, McpCallOptions, McpClients, McpServerInfo, PeerAnswer, Store, ToolStep } from '@svc/core/contracts'
import { callFailed } from '@svc/mcp-protocol'
import { serverMoved } from '../errors.ts'
import { callTimesOf, limitedBySandbox } from '../registry/client-options.ts'
import { type Server, serverNamed } from '../registry/configured-servers.ts'
import { pinListed, pinsKey, putSwitch, switchKey } from '../registry/records.ts'
import type { ServerRegistry } from '../registry/server-registry.ts'
import { serverInfoOf } from '../registry/server-status.ts'
import { type PeerWorkers, type PING, reachedNoOwner } from './peer-workers.ts'
import type { ServerOwner } from './server-owner.ts'

export interface McpClientsOptions {
  readonly owners: readonly ServerOwner[]
  readonly registry: ServerRegistry
  readonly store: Store
  readonly workers: PeerWorkers | undefined
}

/** A question of one worker to the owner of a server. */
type Question = { readonly server: string; readonly fingerprint: string } & (
  | { readonly do: 'open' }
  | {
      readonly do: 'call'
      readonly tool: string
      readonly args: { readonly [name: string]: Json | undefined }
      readonly options: McpCallOptions
    }
)

/** The service `McpClients`: each call goes to the worker that owns the server. */
export function createClients(options: McpClientsOptions): McpClients {
  const { owners, registry, store } = options
  const servers = owners.map(owner => owner.server)
  const ownerOf = (name: string) => owners[servers.indexOf(serverNamed(servers, name))]!
  return {
    list: async () => servers.map(server => currentInfo(server, registry)),
    async tools(name, ctx) {
      const owner = ownerOf(name)
      const { server } = owner
      const known = registry.tools(server)
      if (known) return known
      for await (const _ of askOwner(options, owner, { ...target(server), do: 'open' }, ctx)) continue
      // the list comes through the store, a moment after the answer
      for (;;) {
        const tools = registry.tools(server)
        if (tools) return tools
        ctx.signal.throwIfAborted()
        await owner.nextChange(ctx)
      }
    },
    call(name, tool, args, asked, ctx) {
      const owner = ownerOf(name)
      const { server } = owner
      const callOptions = limitedBySandbox(server.entry, asked)
      const session = registry.isEnabled(server) ? owner.session : undefined
      if (session) return session.call(tool, args, callOptions, ctx)
      return askOwner(options, owner, { ...target(server), do: 'call', tool, args, options: callOptions }, ctx)
    },
    async approve(name, tools, ctx) {
      const { server } = ownerOf(name)
      const listed = registry.catalogue(server)?.tools ?? []
      await registry.take(pinsKey(server), await pinListed(store, server, listed, tools, ctx), ctx)
    },
    async setEnabled(name, enabled, ctx) {
      const { server } = ownerOf(name)
      await registry.take(switchKey(server), await putSwitch(store, server, enabled, ctx), ctx)
    },
  }
}

const target = ({ entry, fingerprint }: Server) => ({ server: entry.name, fingerprint })

/** Answers the questions of other workers to this one as an owner. */
export function createAnswer(owners: readonly ServerOwner[], lasting: CallContext): PeerAnswer {
  return {
    async *answer(message, ctx) {
      const question = message as unknown as Question | typeof PING
      if (question.do === 'ping') return yield true
      const { server: name, fingerprint } = question
      const owner = owners.find(({ server }) => server.entry.name === name && server.fingerprint === fingerprint)
      const session = owner?.offered
      if (!session) throw serverMoved(name)
      if (question.do === 'open') return await session.open({ ...lasting, signal: ctx.signal })
      yield* session.call(question.tool, question.args, question.options, ctx) as AsyncIterable<unknown> as AsyncIterable<Json>
    },
  }
}

/** Asks the owner of a server; asks the next owner if the question has reached none. */
async function* askOwner(
  { workers }: McpClientsOptions,
  owner: ServerOwner,
  question: Question,
  ctx: CallContext
): AsyncGenerator<ToolStep, void> {
  const endsAt = performance.now() + callTimesOf(owner.server.entry).usual
  for (;;) {
    const found = await owner.find(ctx)
    if (typeof found !== 'string') {
      if (question.do === 'open') return await found.open(ctx)
      return yield* found.call(question.tool, question.args, question.options, ctx)
    }
    try {
      // the session of the other worker yields the steps
      return yield* workers!.ask(found, question as unknown as Json, ctx) as AsyncIterable<unknown> as AsyncIterable<ToolStep>
    } catch (error) {
      if (performance.now() > endsAt || !reachedNoOwner(error)) throw ownerFailure(question.server, error)
      await owner.nextChange(ctx)
    }
  }
}

function ownerFailure(server: string, error: unknown): unknown {
  const isUndelivered = reachedNoOwner(error)
  if (codeOf(error) !== 'PEER_GONE' && !isUndelivered) return error
  const delivered = isUndelivered ? 'no' : 'maybe'
  return callFailed(server, 'connection_refused', 'the worker that owned its connection has ended', { delivered, cause: error })
}

/** The state of a server, as far as this worker knows. */
export const currentInfo = (server: Server, registry: ServerRegistry): McpServerInfo =>
  serverInfoOf(server, {
    status: registry.state(server)?.status,
    isEnabled: registry.isEnabled(server),
    tools: registry.tools(server),
  })
