import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as open } from 'node:http'
import { connect } from 'node:net'
import { type EventReading, readEvents, type SentEvent } from './events.ts'

/** A request as an HTTP client sends it. `body` goes as JSON, `raw` as it is. */
export interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: unknown
  readonly raw?: string | Uint8Array
}

/** What came back. `body` is the parsed JSON, `events` the frames of an event stream. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: unknown
  readonly events: readonly SentEvent[]
}

/** An event stream that is being read. */
export interface OpenStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The next event; `undefined` at the end. */
  next(): Promise<SentEvent | undefined>
  /** The events up to the first of this name, that one included. Throws when the stream ends before. */
  until(event: string): Promise<SentEvent[]>
  /** Reads on to the end; the answer has all events, those read before too. */
  rest(): Promise<Answer>
  /** Takes nothing from the socket until `resume`. */
  pause(): void
  resume(): void
  /** Cuts the connection, as a client that leaves does. */
  leave(): Promise<void>
}

/** A client with connections of its own. */
export interface Client {
  send(request: Request): Promise<Answer>
  post(path: string, body: unknown): Promise<Answer>
  get(path: string): Promise<Answer>
  stream(request: Request): Promise<OpenStream>
  close(): void
}

/** Makes a client of the service at `url`; `keepAlive` keeps its connections between requests. */
export function createClient(url: string, { keepAlive = true } = {}): Client {
  const agent = new Agent({ keepAlive, maxSockets: 200 })
  const { hostname, port } = new URL(url)
  const begin = async (request: Request): Promise<[ClientRequest, IncomingMessage]> => {
    const { bytes, headers } = contentOf(request)
    // not as a URL: that would fix the path
    const sending = open({ agent, hostname, port, path: request.path, method: request.method, headers })
    sending.end(bytes)
    const [answer] = (await once(sending, 'response')) as [IncomingMessage]
    return [sending, answer]
  }
  const send = async (request: Request) => answerOf(...(await whole(request)))
  const whole = async (request: Request): Promise<[IncomingMessage, string]> => {
    const [, answer] = await begin(request)
    return [answer, await textOf(answer)]
  }
  return {
    send,
    post: (path, body) => send({ method: 'POST', path, body }),
    get: path => send({ method: 'GET', path }),
    stream: async request => streamOf(...(await begin(request))),
    close: () => agent.destroy(),
  }
}

function contentOf({ body, raw, headers = {} }: Request) {
  const bytes = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const own = { ...headers } as Record<string, string | string[]>
  const typed = Object.keys(own).some(name => name.toLowerCase() === 'content-type')
  if (bytes !== undefined && !typed) own['content-type'] = 'application/json'
  return { bytes, headers: own }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk
  return text
}

const answerOf = ({ statusCode = 0, headers }: IncomingMessage, text: string): Answer => asAnswer(statusCode, headers, text)

function asAnswer(status: number, headers: IncomingHttpHeaders, text: string): Answer {
  const type = headers['content-type'] ?? ''
  const events = type.startsWith('text/event-stream') ? readEvents().push(text) : []
  return {
    status,
    headers,
    text,
    body: type.startsWith('application/json') && text !== '' ? JSON.parse(text) : undefined,
    events,
  }
}

function streamOf(sending: ClientRequest, answer: IncomingMessage): OpenStream {
  const reading: EventReading = readEvents()
  const chunks = answer.setEncoding('utf8')[Symbol.asyncIterator]() as AsyncIterator<string>
  const all: SentEvent[] = []
  const waiting: SentEvent[] = []
  let text = ''
  const next = async (): Promise<SentEvent | undefined> => {
    while (waiting.length === 0) {
      const chunk = await chunks.next()
      if (chunk.done) return undefined
      text += chunk.value
      waiting.push(...reading.push(chunk.value))
    }
    all.push(waiting[0]!)
    return waiting.shift()
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    next,
    async until(name) {
      for (;;) {
        const event = await next()
        if (!event) throw new Error(`the stream ended without ${name}:\n${text}`)
        if (event.event === name) return [...all]
      }
    },
    async rest() {
      while (await next());
      return { ...answerOf(answer, text), events: all }
    },
    pause: () => void answer.socket.pause(),
    resume: () => void answer.socket.resume(),
    async leave() {
      const closed = once(sending, 'close')
      sending.on('error', () => {})
      answer.on('error', () => {})
      sending.destroy()
      await closed
    },
  }
}

/** Sends these bytes on a bare connection and reads until the far side closes it: what no HTTP client would send. */
export async function sendWire(url: string, bytes: string | Uint8Array): Promise<readonly Answer[]> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('utf8').on('data', chunk => (text += chunk))
  // a server that refuses may close before all is written
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.write(bytes)
  await closed
  return answersIn(text)
}

/** The answers of one connection: each has a length or is the last. */
export function answersIn(text: string): Answer[] {
  const answers: Answer[] = []
  for (let rest = text; rest !== ''; ) {
    const [head = ''] = rest.split('\r\n\r\n', 1)
    const [first = '', ...lines] = head.split('\r\n')
    const headers = Object.fromEntries(lines.map(line => [line.split(':', 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, '')]))
    const from = head.length + 4
    const length = headers['content-length']
    const to = length === undefined ? rest.length : from + Number(length)
    answers.push(asAnswer(Number(first.split(' ')[1]), headers, rest.slice(from, to)))
    rest = rest.slice(to)
  }
  return answers
}
