import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Client, type ClientOptions, createClient, isApiError } from '@svc/client'
import { expect } from 'chai'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

interface Odd {
  readonly url: string
  readonly requests: {
    readonly method: string
    readonly url: string
    readonly headers: IncomingMessage['headers']
    readonly body: string
  }[]
}

type Behave = (request: IncomingMessage, response: ServerResponse, count: number) => void

/** A server that behaves as a test says, and a client of it. */
async function against(behave: Behave, test: (svc: Client, odd: Odd) => Promise<unknown>, options: Partial<ClientOptions> = {}) {
  const requests: Odd['requests'] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    requests.push({ method: request.method!, url: request.url!, headers: request.headers, body })
    behave(request, response, requests.length)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await test(createClient({ url, retry: { minDelayMs: 1 }, reconnect: { minDelayMs: 1, retries: 3 }, ...options }), {
      url,
      requests,
    })
  } finally {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS = { 'content-type': 'text/event-stream' }
const record = (error_code: string, details = {}) =>
  JSON.stringify({ success: false, error: `it is ${error_code}`, error_code, details })
const refuse = (response: ServerResponse, status: number, code: string, headers = {}, details = {}) =>
  response.writeHead(status, { ...JSON_TYPE, 'x-request-id': 'r-1', ...headers }).end(record(code, details))
const accept = (response: ServerResponse, value: object = {}) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(value))

async function failure(work: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await work
  } catch (error) {
    if (!isApiError(error)) throw error
    const { code, status, requestId, retryAfterMs, hint, message, details } = error
    return { code, status, requestId, retryAfterMs, hint, message, details }
  }
  throw new Error('it did not fail')
}

async function collect<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const event of events) all.push(event)
  return all
}

const chat = (svc: Client) => svc.chat.reply({ message: 'x' })

describe('the client and a failing request', () => {
  it('waits as long as Retry-After says, and sends even a POST again', () =>
    against(
      (_, response, count) =>
        count === 1
          ? refuse(response, 429, 'RATE_LIMITED', { 'retry-after': '1' }, { retry_after: 1 })
          : accept(response, { response: 'yes' }),
      async (svc, { requests }) => {
        const began = performance.now()
        expect((await chat(svc)).response).to.equal('yes')
        expect(performance.now() - began).to.be.above(990)
        expect(requests.map(({ method, body }) => `${method} ${body}`)).to.deep.equal([
          'POST {"message":"x"}',
          'POST {"message":"x"}',
        ])
      }
    ))

  it('does not wait longer than maxDelayMs, and reports the time', () =>
    against(
      (_, response) => refuse(response, 429, 'RATE_LIMITED', { 'retry-after': '86400' }, { retry_after: 86_400 }),
      async (svc, { requests }) => {
        expect(await failure(chat(svc))).to.deep.include({
          code: 'RATE_LIMITED',
          status: 429,
          retryAfterMs: 86_400_000,
          requestId: 'r-1',
        })
        expect(requests).to.have.length(1)
      }
    ))

  it('repeats a GET after 503, a bounded number of times, and a POST never', () =>
    against(
      (_, response) => refuse(response, 503, 'UNAVAILABLE'),
      async (svc, { requests }) => {
        expect(await failure(svc.get('/api/v1/status'))).to.include({ code: 'UNAVAILABLE', status: 503 })
        expect(requests).to.have.length(3)
        await failure(svc.get('/api/v1/status', { retry: { retries: 4, minDelayMs: 1 } }))
        expect(requests).to.have.length(8)
        await failure(svc.get('/api/v1/status', { retry: false }))
        expect(requests).to.have.length(9)
        await failure(chat(svc))
        expect(requests).to.have.length(10)
      }
    ))

  it('repeats nothing that may have been done, or that cannot succeed', () =>
    against(
      (_, response) => refuse(response, 503, 'UNAVAILABLE', {}, { retryable: false }),
      async (svc, { requests }) => {
        await failure(svc.get('/api/v1/status'))
        expect(requests).to.have.length(1)
      }
    ))

  it('sends the same Idempotency-Key with each repetition of a start, and another with the next start', () =>
    against(
      (request, response, count) =>
        count < 3 ? request.socket.destroy() : accept(response, { workflow_id: 'w', status: 'running' }),
      async (svc, { requests }) => {
        await svc.runs.start({ workflow: 'sum' })
        await svc.runs.start({ workflow: 'sum' }, { waitSeconds: 0, headers: { 'X-Own': '1' } })
        const keys = requests.map(({ headers }) => headers['idempotency-key'])
        expect(keys[0]).to.match(/^[0-9a-f]{32}$/)
        expect([keys[1], keys[2]]).to.deep.equal([keys[0], keys[0]])
        expect(keys[3])
          .to.match(/^[0-9a-f]{32}$/)
          .and.not.equal(keys[0])
        expect(requests.at(-1)!.headers).to.include({ prefer: 'respond-async', 'x-own': '1' })
      }
    ))

  it('does not repeat a POST whose connection breaks', () =>
    against(
      request => request.socket.destroy(),
      async (svc, { requests }) => {
        expect(await failure(chat(svc))).to.include({ code: 'CONNECTION_FAILED', status: 0 })
        expect(requests).to.have.length(1)
      }
    ))

  it('repeats a POST if the connection is refused: it reached no server', async () => {
    let calls = 0
    let url = ''
    await against(
      () => {},
      async (_, odd) => void (url = odd.url)
    )
    const svc = createClient({
      url,
      retry: { minDelayMs: 1, retries: 3 },
      fetch: request => {
        calls += 1
        return fetch(request)
      },
    })
    expect(await failure(chat(svc))).to.include({ code: 'CONNECTION_FAILED', message: 'the connection failed: ECONNREFUSED' })
    expect(calls).to.equal(4)
  })

  it('ends a request to a server that hangs: before the headers, within the body, and by an abort', () =>
    against(
      (_, response, count) => {
        if (count > 1) response.writeHead(200, JSON_TYPE).write('{"respon')
      },
      async svc => {
        expect(await failure(svc.get('/api/v1/status'))).to.include({ code: 'REQUEST_TIMEOUT', status: 0 })
        expect(await failure(svc.get('/api/v1/status'))).to.include({ code: 'REQUEST_TIMEOUT' })
        const reason = new Error('my reason')
        const aborting = svc.get('/api/v1/status', { signal: AbortSignal.timeout(20), timeoutMs: 10_000 })
        expect(await aborting.catch((error: unknown) => error)).to.have.property('name', 'TimeoutError')
        expect(await svc.get('/api/v1/status', { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error)).to.equal(
          reason
        )
      },
      { timeoutMs: 100 }
    ))

  it('ends a wait for the next attempt by an abort', () =>
    against(
      (_, response) => refuse(response, 429, 'RATE_LIMITED', { 'retry-after': '20' }),
      async svc => {
        const waiting = svc.get('/api/v1/status', { signal: AbortSignal.timeout(100) })
        expect(await waiting.catch((error: unknown) => error)).to.have.property('name', 'TimeoutError')
      }
    ))

  it('reports what is no response of svc', () =>
    against(
      (request, response) => {
        if (request.url!.includes('health')) response.writeHead(503, JSON_TYPE).end('{"status":"degraded"}')
        else if (request.url!.includes('page'))
          response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>')
        else if (request.url!.includes('moved')) response.writeHead(307, { location: 'http://127.0.0.1:9/stolen' }).end()
        else response.writeHead(200, JSON_TYPE).end('{"not": ')
      },
      async (svc, { requests }) => {
        const get = (id: string) => failure(svc.get('/api/v1/conversations/{id}', { path: { id }, retry: false }))
        expect(await get('page')).to.include({ code: 'RESPONSE_INVALID', status: 502 })
        expect(await get('moved')).to.include({ code: 'REDIRECTED', status: 307 })
        expect(await get('other')).to.include({ code: 'RESPONSE_INVALID' })
        expect(requests).to.have.length(3)
        expect(await failure(svc.get('/health', { retry: false }))).to.deep.include({
          code: 'RESPONSE_INVALID',
          status: 503,
          details: { body: { status: 'degraded' } },
        })
      },
      { apiKey: 'key' }
    ))

  it('reads no response without an end', () =>
    against(
      (_, response) => {
        response.writeHead(200, JSON_TYPE)
        const more = () => !response.destroyed && response.write('x'.repeat(100_000), () => setImmediate(more))
        more()
      },
      async svc => expect(await failure(svc.get('/api/v1/status'))).to.include({ code: 'RESPONSE_TOO_LARGE' }),
      { maxResponseLength: 1_000_000 }
    ))

  it('keeps the code of a newer server, its hint and its details', () =>
    against(
      (_, response) => refuse(response, 412, 'PRECONDITION_FAILED', {}, { hint: 'Read it again' }),
      async svc =>
        expect(await failure(svc.get('/api/v1/status'))).to.deep.include({
          code: 'PRECONDITION_FAILED',
          status: 412,
          hint: 'Read it again',
          message: 'it is PRECONDITION_FAILED',
        })
    ))
})

describe('the client and its options', () => {
  it('sends nothing with a credential, a name or an address that is wrong, and does not show it', () =>
    against(
      (_, response) => accept(response),
      async (svc, { url, requests }) => {
        const secret = 'geheim\n'
        const wrong = await failure(createClient({ url, token: secret }).get('/api/v1/status'))
        expect(wrong).to.include({ code: 'CREDENTIAL_INVALID' })
        expect(JSON.stringify(wrong)).to.not.contain('geheim')
        for (const id of ['', '.', '..'])
          expect(await failure(svc.delete('/api/v1/conversations/{id}', { path: { id } }))).to.include({
            code: 'REQUEST_INVALID',
          })
        const addresses = ['//me:geheim@127.0.0.1', '//127.0.0.1/?key=geheim', '//127.0.0.1/#geheim'].map(rest => `http:${rest}`)
        for (const bad of [...addresses, '/', '', 'file:///geheim', '127.0.0.1:8080', 'http://'])
          expect(() => createClient({ url: bad }))
            .to.throw()
            .that.satisfies((error: Error) => isApiError(error, 'REQUEST_INVALID') && !String(error.stack).includes('geheim'))
        const header = await failure(svc.get('/api/v1/status', { headers: { authorization: 'geheim\n\ngeheim' } }))
        expect(header).to.include({ code: 'REQUEST_INVALID' })
        expect(JSON.stringify(header)).to.not.contain('geheim')
        const body = { message: 1n } as unknown as { message: string }
        expect(await failure(svc.chat.reply(body))).to.include({ code: 'REQUEST_INVALID' })
        expect(requests).to.have.length(0)
      }
    ))

  it('adds a path prefix, encodes names, and asks for the credential at each attempt', () => {
    let asked = 0
    return against(
      (_, response, count) => (count === 1 ? refuse(response, 503, 'UNAVAILABLE') : accept(response)),
      async (_, { url, requests }) => {
        const svc = createClient({ url: `${url}/prefix/`, token: async () => `token-${++asked}`, retry: { minDelayMs: 1 } })
        await svc.get('/api/v1/conversations/{id}', { path: { id: 'a/b?c' } })
        expect(requests.map(request => request.url)).to.deep.equal(Array(2).fill('/prefix/api/v1/conversations/a%2Fb%3Fc'))
        expect(requests.map(({ headers }) => headers.authorization)).to.deep.equal(['Bearer token-1', 'Bearer token-2'])
      }
    )
  })

  it('passes on what a credential function throws', async () => {
    const reason = new Error('no token')
    const svc = createClient({ url: 'http://127.0.0.1:1', token: () => Promise.reject(reason) })
    expect(await svc.get('/api/v1/status').catch((error: unknown) => error)).to.equal(reason)
  })
})

const runEvent = (id: number, type = 'node_started') =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ type, step: `s${id}` })}\n\n`
const stepsOf = (events: readonly object[]) => events.map(event => (event as { step: string }).step)

describe('the client and a failing stream', () => {
  it('connects again after the last event, obeys retry, and survives a refusal', () =>
    against(
      (request, response, count) => {
        if (request.url!.endsWith('/status')) return accept(response, { status: 'running' })
        if (count === 2) return refuse(response, 503, 'UNAVAILABLE', { 'retry-after': '0' })
        response.writeHead(200, EVENTS)
        if (count === 1) response.end(`:\n\n${runEvent(1)}${runEvent(2)}retry: 300\n\n`)
        else if (count === 3) response.end(`${runEvent(3)}id: 4\ndata: {"type":"node_comp`)
        else if (count === 4) response.end(`${runEvent(4, 'run_completed')}`)
      },
      async (svc, { requests }) => {
        const began = performance.now()
        const events = svc.runs.events('r')
        expect(stepsOf(await collect(events))).to.deep.equal(['s1', 's2', 's3', 's4'])
        expect([events.previousEventId, events.lastEventId]).to.deep.equal(['3', '4'])
        expect(performance.now() - began).to.be.above(290)
        expect(requests.map(({ headers }) => headers['last-event-id'])).to.deep.equal([undefined, '2', '2', '3'])
      }
    ))

  it('gives up when each connection ends at once', () =>
    against(
      (_, response) => response.writeHead(200, EVENTS).end(),
      async (svc, { requests }) => {
        expect(await failure(collect(svc.events()))).to.include({ code: 'STREAM_CUT' })
        expect(requests).to.have.length(4)
      }
    ))

  it('ends without an event if the run had ended before', () =>
    against(
      (request, response) =>
        request.url!.endsWith('/status')
          ? accept(response, { status: 'completed' })
          : response.writeHead(200, EVENTS).end(':\n\n'),
      async (svc, { requests }) => {
        expect(await collect(svc.runs.events('r', { after: '7' }))).to.deep.equal([])
        expect(requests.map(({ url }) => url.replace(/.*\//, ''))).to.deep.equal(['events', 'status', 'events'])
        expect(requests[0]!.headers).to.include({ 'last-event-id': '7', accept: 'text/event-stream' })
      }
    ))

  it('does not connect again after a refusal', () =>
    against(
      (_, response, count) =>
        count === 1 ? response.writeHead(200, EVENTS).end(runEvent(1)) : refuse(response, 401, 'AUTHENTICATION_FAILED'),
      async (svc, { requests }) => {
        const seen: object[] = []
        const reading = (async () => {
          for await (const event of svc.runs.events('r')) seen.push(event)
        })()
        expect(await failure(reading)).to.include({ code: 'AUTHENTICATION_FAILED', status: 401 })
        expect([seen.length, requests.length]).to.deep.equal([1, 2])
      }
    ))

  it('remembers an id without data, which moves the position only', () =>
    against(
      (_, response, count) => {
        response.writeHead(200, EVENTS)
        if (count === 1) response.end('id: one\n\nid: two\n\n')
        else response.write('id: three\nevent: svc.x\ndata: {"type":"svc.x"}\n\n')
      },
      async (svc, { requests }) => {
        for await (const event of svc.events()) {
          expect(event.type).to.equal('svc.x')
          break
        }
        expect(requests.map(({ headers }) => headers['last-event-id'])).to.deep.equal([undefined, 'two'])
      }
    ))

  it('counts a silent connection as broken', () =>
    against(
      ({ headers }, response) => {
        response.writeHead(200, EVENTS)
        response.write(headers['last-event-id'] === '1' ? runEvent(2, 'run_failed') : runEvent(1))
      },
      async svc => expect(stepsOf(await collect(svc.runs.events('r')))).to.deep.equal(['s1', 's2']),
      { idleTimeoutMs: 100 }
    ))

  it('takes a position whose line comes in pieces', () =>
    against(
      async (_, response, count) => {
        response.writeHead(200, EVENTS)
        const text = ['id: one\n\n', 'id: 2\ndata: {"type":"svc.x","id: 3":"id: 4"}\n\n', 'id: five\n\n'].join('')
        if (count > 1) return void response.write('data: {"type":"svc.last"}\n\n')
        for (const character of text) {
          response.write(character)
          await new Promise(resolve => setTimeout(resolve, 2))
        }
        response.end()
      },
      async (svc, { requests }) => {
        const types: string[] = []
        for await (const event of svc.events()) if (types.push(event.type) === 2) break
        expect(types).to.deep.equal(['svc.x', 'svc.last'])
        expect(requests.map(({ headers }) => headers['last-event-id'])).to.deep.equal([undefined, 'five'])
      }
    ))

  it('reports garbage, a page instead of a stream, and an event without an end', () =>
    against(
      (request, response) => {
        if (request.url!.includes('page')) response.writeHead(200, { 'content-type': 'text/html' }).end('<p>data: 1</p>')
        else if (request.url!.includes('garbage')) response.writeHead(200, EVENTS).end('\u0000\nfoo: bar\ndata: {"a":\ndata\n\n')
        else {
          response.writeHead(200, EVENTS)
          const more = () => !response.destroyed && response.write('x'.repeat(100_000), () => setImmediate(more))
          response.write('data: "')
          more()
        }
      },
      async (svc, { requests }) => {
        expect(await failure(collect(svc.runs.events('page')))).to.include({ code: 'RESPONSE_INVALID', status: 200 })
        expect(await failure(collect(svc.runs.events('garbage')))).to.include({ code: 'STREAM_INVALID' })
        expect(await failure(collect(svc.runs.events('huge')))).to.include({ code: 'EVENT_TOO_LARGE' })
        expect(requests, 'streams that are not resumed').to.have.length(3)
      },
      { maxEventLength: 1_000_000 }
    ))

  it('reads an event of 5 MB in small pieces, and characters that are cut in the middle', () =>
    against(
      async (_, response) => {
        const bytes = Buffer.from(
          `id: 1\ndata: ${JSON.stringify({ type: 'run_completed', result: { text: 'ä€😀'.repeat(500_000) } })}\n\n`
        )
        response.writeHead(200, EVENTS)
        for (let at = 0; at < bytes.length; at += 65_537)
          if (!response.write(bytes.subarray(at, at + 65_537))) await once(response, 'drain')
        response.end()
      },
      async svc => {
        const [event] = await collect(svc.runs.events('r'))
        expect(event).to.have.nested.property('result.text', 'ä€😀'.repeat(500_000))
      }
    ))

  it('closes the connection when a loop is left, and when its signal aborts', () => {
    const closed: Promise<unknown>[] = []
    return against(
      (_, response) => {
        closed.push(once(response, 'close'))
        response.writeHead(200, EVENTS).write(runEvent(1))
      },
      async svc => {
        for await (const event of svc.runs.events('r')) {
          expect(event).to.have.property('step', 's1')
          break
        }
        await closed[0]
        const reason = new Error('enough')
        const controller = new AbortController()
        const reading = (async () => {
          for await (const _ of svc.runs.events('r', { signal: controller.signal })) controller.abort(reason)
        })()
        expect(await reading.catch((error: unknown) => error)).to.equal(reason)
        await closed[1]
        const failing = (async () => {
          for await (const _ of svc.runs.events('r')) throw reason
        })()
        expect(await failing.catch((error: unknown) => error)).to.equal(reason)
        await closed[2]
      }
    )
  })

  it('ends when its signal aborts while it waits, even if the request is garbage by then', () => {
    const closed: Promise<unknown>[] = []
    return against(
      (_, response) => {
        closed.push(once(response, 'close'))
        response.writeHead(200, EVENTS).write(runEvent(1))
      },
      async svc => {
        const reason = new Error('enough')
        const controller = new AbortController()
        const seen: unknown[] = []
        const reading = (async () => {
          for await (const event of svc.runs.events('r', { signal: controller.signal })) seen.push(event)
        })()
        while (seen.length === 0) await pause(10)
        for (let round = 0; round < 3; round++) {
          collectGarbage()
          await pause(10)
        }
        controller.abort(reason)
        expect(await reading.catch((error: unknown) => error)).to.equal(reason)
        await closed[0]
      }
    )
  })

  it('is read once', () =>
    against(
      (_, response) => response.writeHead(200, EVENTS).end(runEvent(1, 'run_completed')),
      async svc => {
        const events = svc.runs.events('r')
        await collect(events)
        expect(await failure(collect(events))).to.include({ code: 'REQUEST_INVALID' })
      }
    ))
})

const TURN = 'turn_1'
const startEvent = `id: 1\nevent: start\ndata: ${JSON.stringify({ type: 'start', turn_id: TURN, request_id: 'r' })}\n\n`
const token = (id: number) => `id: ${id}\nevent: token\ndata: ${JSON.stringify({ type: 'token', content: `t${id}` })}\n\n`
const endEvent = (id: number) => `id: ${id}\nevent: end\ndata: {"type":"end","status":"completed"}\n\n`
const callsOf = ({ requests }: Odd) => requests.map(({ method, url }) => `${method} ${url.replace('/api/v1/chat/', '')}`)

describe('the client and a chat stream that breaks', () => {
  const open = (svc: Client) => svc.chat.stream({ message: 'x' })

  it('connects again behind the last event, without the message, and waits as the server asks', () =>
    against(
      (_, response, count) => {
        if (count === 2) return refuse(response, 503, 'UNAVAILABLE', { 'retry-after': '1' })
        response.writeHead(200, EVENTS)
        if (count === 1) response.write(startEvent + token(2) + token(3).slice(0, -9), () => response.destroy())
        else response.end(token(3) + endEvent(4))
      },
      async (svc, odd) => {
        const began = performance.now()
        const events = open(svc)
        expect((await collect(events)).map(({ type }) => type)).to.deep.equal(['start', 'token', 'token', 'end'])
        expect(performance.now() - began).to.be.above(990)
        expect([events.turnId, events.lastEventId]).to.deep.equal([TURN, '4'])
        expect(callsOf(odd)).to.deep.equal(['POST stream', `GET stream/${TURN}`, `GET stream/${TURN}`])
        expect(odd.requests.map(({ headers, body }) => [headers['last-event-id'], body])).to.deep.equal([
          [undefined, '{"message":"x"}'],
          ['2', ''],
          ['2', ''],
        ])
      },
      { reconnect: { minDelayMs: 1, maxDelayMs: 5_000 } }
    ))

  it('reports a turn that the server has lost, and events that it keeps no longer', () =>
    against(
      (request, response) => {
        if (request.method === 'POST') return response.writeHead(200, EVENTS).end(startEvent)
        if (request.url!.endsWith('gone')) return refuse(response, 400, 'INVALID_VALUE', {}, { field: 'after', first: 9 })
        refuse(response, 404, 'INVALID_VALUE', {}, { field: 'turn_id' })
      },
      async (svc, odd) => {
        const lost = { code: 'TURN_LOST', details: { turn_id: TURN }, requestId: 'r-1' }
        expect(await failure(collect(open(svc)))).to.deep.include({ ...lost, status: 404 })
        expect(callsOf(odd)).to.deep.equal(['POST stream', `GET stream/${TURN}`])
        expect(await failure(collect(svc.chat.resume('gone')))).to.include({ code: 'TURN_LOST', status: 400 })
      }
    ))

  it('gives up after the failed attempts that are allowed, and does not cancel the turn', () =>
    against(
      (request, response) =>
        request.method === 'POST'
          ? response.writeHead(200, EVENTS).write(startEvent, () => response.destroy())
          : response.destroy(),
      async (svc, odd) => {
        expect(await failure(collect(open(svc)))).to.include({ code: 'CONNECTION_FAILED' })
        expect(callsOf(odd)).to.deep.equal(['POST stream', ...Array(4).fill(`GET stream/${TURN}`)])
      }
    ))

  it('sends no message twice if the connection breaks before the turn has a name', () =>
    against(
      (_, response) => response.writeHead(200, EVENTS).end(':\n\n'),
      async (svc, odd) => {
        expect(await failure(collect(open(svc)))).to.include({ code: 'STREAM_CUT' })
        expect(callsOf(odd)).to.deep.equal(['POST stream'])
      }
    ))

  it('cancels the turn when the loop is left, with the same headers, unless it is detached', () =>
    against(
      (request, response) => {
        if (request.url!.endsWith('/cancel')) accept(response, { success: true })
        else response.writeHead(200, EVENTS).write(startEvent)
      },
      async (svc, odd) => {
        const first = async (options: object, body = {}) => {
          for await (const _ of svc.chat.stream({ message: 'x', ...body }, options)) break
          return callsOf(odd).splice(-1)[0]
        }
        expect(await first({ headers: { 'x-own': '1' } })).to.equal(`POST stream/${TURN}/cancel`)
        expect(odd.requests.at(-1)!.headers).to.include({ 'x-own': '1' })
        expect(await first({ whenLeft: 'close' })).to.equal('POST stream')
        expect(await first({}, { detach: true })).to.equal('POST stream')
        expect(await first({ whenLeft: 'cancel' }, { detach: true })).to.equal(`POST stream/${TURN}/cancel`)
        expect(await first({ onAsk: () => true })).to.equal(`POST stream/${TURN}/cancel`)
        for await (const _ of svc.chat.resume(TURN)) break
        expect(callsOf(odd).at(-1)).to.equal(`GET stream/${TURN}`)
        for await (const _ of svc.chat.resume(TURN, { whenLeft: 'cancel' })) break
        expect(callsOf(odd).at(-1)).to.equal(`POST stream/${TURN}/cancel`)
      }
    ))
})
