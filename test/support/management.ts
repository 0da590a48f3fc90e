import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { type Answer, createClient } from './client.ts'
import { runSvc } from './command.ts'
import { type Service, startService } from './service.ts'
import { startTwo } from './two-workers.ts'

/** A client with the scopes of one token. */
export interface Managed {
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string): Promise<Answer>
  /** Opens an event stream. */
  stream(method: string, path: string, body?: unknown): ReturnType<ReturnType<typeof createClient>['stream']>
}

/** A server that checks credentials. */
export interface ManagedService extends AsyncDisposable {
  readonly service: Service
  /** A new token with these scopes, separated by commas. */
  as(name: string, scopes: string): Promise<Managed>
}

const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }

export interface ManagedOptions {
  readonly config?: object
  readonly workers?: 1 | 2
  readonly env?: Readonly<Record<string, string>>
  /** The working folder. Default: the home. */
  readonly cwd?: string
}

/** Starts a server of this home. */
export async function startManaged(
  home: string,
  { config = {}, workers = 1, env = {}, cwd }: ManagedOptions = {}
): Promise<ManagedService> {
  await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
  const options = { home, env: { ...AUTH, ...env }, ...(cwd === undefined ? {} : { cwd }) }
  const service = await (workers === 2 ? startTwo(options) : startService(options))
  return {
    service,
    async as(name, scopes) {
      const { out, err } = await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home })
      const token = out.trim()
      if (token === '') throw new Error(err)
      return managedBy(service.url, token)
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** Each request has a connection of its own, so that the workers take turns. */
function managedBy(url: string, token: string): Managed {
  const client = createClient(url, { keepAlive: false })
  const request = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => ({
    method,
    path,
    headers: { authorization: `Bearer ${token}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return {
    send: (...words) => client.send(request(...words)),
    get: path => client.send(request('GET', path)),
    stream: (...words) => client.stream(request(...words)),
  }
}

/** The JSON of an answer to the operator of the machine, over the control socket of the server of this home. */
export async function operate<T>(home: string, method: string, path: string): Promise<T> {
  using server = await reachServer(home)
  const ctx = systemContext(AbortSignal.timeout(30_000), 'test')
  const [head, ...texts] = await Array.fromAsync(server.control.request({ method, path }, ctx))
  if (typeof head !== 'object' || head.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify([head, ...texts])}`)
  return JSON.parse(texts.map(text => (typeof text === 'string' ? text : '')).join('')) as T
}

/** Status, code and field of an answer. */
export function outcomeOf({ status, body }: Answer) {
  const { error_code: code, details = {} } = (body ?? {}) as {
    error_code?: string
    details?: { field?: string; reason?: string }
  }
  return { status, code, field: details.field, reason: details.reason }
}

/** The data of the events, with their types. */
export const eventsOf = ({ events }: Pick<Answer, 'events'>) =>
  events.map(({ data }) => data as { readonly type: string; readonly [field: string]: unknown })
