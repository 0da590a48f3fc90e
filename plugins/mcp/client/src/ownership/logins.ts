import { type CallContext, codeOf } from '@svc/core'
import type { McpLoginStep } from '@svc/core/contracts'
import type { Loopback } from '@svc/mcp-protocol/oauth'
import type { HttpOptions } from '../connection/client-types.ts'
import { entryInvalid, loginUnknown } from '../errors.ts'
import { clientOptions } from '../registry/client-options.ts'
import { loginProblem, type McpServerSettings } from '../registry/configured-servers.ts'
import { personStorage } from '../registry/records.ts'
import type { McpContext } from './context.ts'

/** An answer on its way to the worker of a login. */
export interface LoginAnswer {
  readonly do: 'login-answer'
  readonly id: string
  readonly address: string
}

export type Logins = ReturnType<typeof createLogins>

const SEPARATOR = '~'

/** Logins of people, who read the page from a stream. The browser comes back to a local port, or the person passes its address. */
export function createLogins({ store, env, self, workers, lasting }: McpContext) {
  const open = new Map<string, { readonly principal: string; readonly loopback: Loopback }>()
  /** Takes an answer from another worker, or of this one. */
  const take = ({ id, address }: LoginAnswer, { principal }: CallContext) => {
    const login = open.get(id)
    if (login?.principal !== principal.id) throw loginUnknown()
    const query = URL.parse(address)?.searchParams
    if (!query || !login.loopback.take(query)) throw entryInvalid('address', 'is not an answer to this login')
  }
  return {
    take,
    async answer(id: string, address: string, ctx: CallContext): Promise<void> {
      const worker = id.slice(0, id.lastIndexOf(SEPARATOR))
      const answer: LoginAnswer = { do: 'login-answer', id, address }
      if (open.has(id)) return take(answer, ctx)
      if (!workers || worker === '' || worker === self) throw loginUnknown()
      try {
        for await (const _ of workers.ask(worker, { ...answer }, ctx)) continue
      } catch (error) {
        throw codeOf(error)?.startsWith('PEER_') ? loginUnknown() : error
      }
    },
    async *login(server: McpServerSettings, port: number | undefined, ctx: CallContext): AsyncGenerator<McpLoginStep, void> {
      const problem = loginProblem(server)
      if (problem !== undefined) throw entryInvalid('server', problem)
      const { loginWith } = await import('../connection/login.ts')
      const { openLoopback } = await import('@svc/mcp-protocol/oauth')
      const stop = new AbortController()
      const signal = AbortSignal.any([ctx.signal, stop.signal])
      const storage = personStorage(store, server, lasting)
      const options = clientOptions(server, { env, sandbox: undefined, storage, lasting }) as HttpOptions
      const shown = Promise.withResolvers<URL>()
      await using loopback = await openLoopback(page => shown.resolve(page), port ?? 0)
      const id = `${self}${SEPARATOR}${crypto.randomUUID()}`
      const done = loginWith(loopback, options, { signal }).then(() => storage.done())
      // it can fail while the page is read; the await below throws that error
      done.catch(() => undefined)
      try {
        const page = await Promise.race([shown.promise, done])
        open.set(id, { principal: ctx.principal.id, loopback })
        if (page) yield { type: 'page', id, url: page.href, redirect: loopback.redirectUrl }
        await done
        yield { type: 'done' }
      } finally {
        open.delete(id)
        stop.abort(new Error('the reader of the login has left'))
      }
    },
  }
}
