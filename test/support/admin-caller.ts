import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from './client.ts'
import { runSvc } from './command.ts'
import type { Service } from './service.ts'
import { startTwo } from './two-workers.ts'

const KEY = 'the-key-of-the-operator'
const AUTH = { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' }

/** Requests of one principal, each over a connection of its own, so that every worker has its turn. */
export interface Caller {
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** The body of an answer with this status. */
  expect<T>(status: number, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T>
  /** Expects a refusal with this status and code. */
  refused(
    status: number,
    code: string,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>
  ): Promise<Answer>
}

export function callerOf(url: string, credential?: string): Caller {
  const client = createClient(url, { keepAlive: false })
  const own: Record<string, string> = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
  const send: Caller['send'] = (method, path, body, headers = {}) =>
    client.send({ method, path, headers: { ...own, ...headers }, ...(body === undefined ? {} : { body }) })
  return {
    send,
    async expect<T>(status: number, method: string, path: string, body?: unknown, headers?: Record<string, string>) {
      const answer = await send(method, path, body, headers)
      expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(status)
      return answer.body as T
    },
    async refused(status, code, method, path, body, headers) {
      const answer = await send(method, path, body, headers)
      expect(
        [answer.status, (answer.body as { error_code?: string } | undefined)?.error_code],
        `${method} ${path}: ${answer.text}`
      ).to.deep.equal([status, code])
      expect(answer.text).to.not.match(/\n\s+at |node_modules|\/tmp\//)
      return answer
    },
  }
}

/** The callers of a server with two workers and authentication. */
export interface Managed {
  readonly service: Service
  readonly home: string
  readonly url: string
  /** The operator: all scopes. */
  readonly admin: Caller
  /** A token with the scope `read`. */
  readonly reader: Caller
  /** Another one. */
  readonly other: Caller
  /** A token with all scopes but `read` and `admin`. */
  readonly unfit: Caller
  /** The text of the token of `reader`. */
  readonly token: string
}

/** Starts two workers with authentication in a home; `config` is its svc.config.yaml. */
export async function startManaged(
  home: string,
  config: string,
  env: Record<string, string> = {}
): Promise<Managed & AsyncDisposable> {
  await writeFile(join(home, 'svc.config.yaml'), config)
  const create = async (name: string, scopes: string) => {
    const { err, code, out } = await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home, env, share: true })
    expect(code, err).to.equal(0)
    return out.trim()
  }
  const token = await create('anna', 'read')
  const [second, unfit] = [await create('bert', 'read'), await create('carl', 'chat,workflows,tools')]
  const service = await startTwo({ home, env: { ...AUTH, ...env } })
  const { url } = service
  return {
    service,
    home,
    url,
    token,
    admin: callerOf(url, KEY),
    reader: callerOf(url, token),
    other: callerOf(url, second),
    unfit: callerOf(url, unfit),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

/** The same answer of whichever worker, ten times. */
export async function tenTimes(caller: Caller, path: string): Promise<unknown> {
  const answers: Answer[] = []
  for (let at = 0; at < 10; at++) answers.push(await caller.send('GET', path))
  const [first, ...others] = answers
  expect(first!.status, first!.text).to.equal(200)
  for (const answer of others) expect(answer.body).to.deep.equal(first!.body)
  return first!.body
}

/** Waits until a condition holds. */
export async function until(what: string, holds: () => Promise<boolean>, ms = 30_000): Promise<void> {
  for (const end = Date.now() + ms; !(await holds()); await new Promise(resolve => setTimeout(resolve, 50)))
    if (Date.now() > end) throw new Error(`waited too long until ${what}`)
}

/** A change that the server has published, as its log has it. */
export interface LoggedChange {
  readonly change: string
  readonly subject: string
  readonly principal: string
  readonly before?: object
  readonly after?: object
}

/** Waits until the log has so many changes of a subject, and returns all. */
export async function changesOf(
  { service }: Pick<Managed, 'service'>,
  subject: string,
  count = 1
): Promise<readonly LoggedChange[]> {
  const found = () =>
    service
      .output()
      .split('\n')
      .filter(line => line.includes('"change":'))
      .map(line => JSON.parse(line) as LoggedChange)
      .filter(change => change.subject === subject)
  await until(`${count} changes of ${subject} are logged`, async () => found().length >= count)
  return found()
}
