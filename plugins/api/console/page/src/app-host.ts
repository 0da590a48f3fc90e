import type { Schemas } from '@svc/client'
import { type BridgeOptions, limited, pageError, type Params } from './bridge.ts'
import { type CallResult, callResultOf, followCall, isAsking, type Running } from './call-outcome.tsx'
import { plainText } from './visible-text.ts'
import { isRecord } from './schema-input.tsx'
import { createValue, type Value } from './value.ts'

/** A call of the app, for the reader. */
export interface AppCall {
  readonly key: number
  readonly tool: string
  readonly running: Running
}

/** What the app wants and the reader decides. */
export interface AppQuestion {
  readonly kind: 'link' | 'message'
  readonly text: string
  readonly decide: (isGranted: boolean) => void
}

interface AppHostOptions {
  readonly app: Schemas['ToolApp']
  readonly input: object
  readonly result: CallResult
}

/** The console's side of an MCP App: what it may do, and what the reader sees of it. */
export interface AppHost {
  readonly calls: Value<readonly AppCall[]>
  readonly question: Value<AppQuestion | undefined>
  /** Pixels. */
  readonly height: Value<number>
  readonly connect: () => Pick<BridgeOptions, 'methods' | 'capabilities' | 'documents' | 'onStarted' | 'onNotice'>
}

const MOST_CALLS = 4
const MOST_SHOWN = 20
const LONGEST_MESSAGE = 4_000
const LONGEST_URL = 2_000
export const HEIGHTS = { first: 320, least: 80, most: 640 }

export function createAppHost({ app, input, result }: AppHostOptions): AppHost {
  const calls = createValue<readonly AppCall[]>([])
  const question = createValue<AppQuestion | undefined>(undefined)
  const height = createValue(HEIGHTS.first)
  const isWaiting = () => question.get() !== undefined || calls.get().some(({ running }) => isAsking(running))
  const methods = {
    'tools/call': limited('calls', createCall(app, calls), MOST_CALLS),
    ...createQuestions(question),
    'ui/request-display-mode': () => ({ mode: 'inline' }),
  }
  return {
    calls,
    question,
    height,
    connect() {
      let isSent = false
      return {
        methods,
        capabilities: { openLinks: {}, serverTools: {}, message: { text: {} }, sandbox: {} },
        // the frame itself, and the app that takes its place
        documents: 2,
        onStarted(notify) {
          notify('ui/notifications/tool-input', { arguments: input })
          notify('ui/notifications/tool-result', result)
        },
        onNotice(method, params, notify) {
          if (method === 'ui/notifications/sandbox-proxy-ready' && !isSent) {
            isSent = true
            notify('ui/notifications/sandbox-resource-ready', { html: app.html })
          }
          // while the reader decides, nothing moves below the pointer
          if (method === 'ui/notifications/size-changed' && !isWaiting()) height.set(heightIn(params) ?? height.get())
        },
      }
    },
  }
}

function heightIn({ height }: Params): number | undefined {
  if (typeof height !== 'number' || !Number.isFinite(height)) return undefined
  return Math.round(Math.min(Math.max(height, HEIGHTS.least), HEIGHTS.most))
}

/** Calls of the tools of its own server, with the session of the reader. */
function createCall(app: Schemas['ToolApp'], calls: Value<readonly AppCall[]>) {
  let last = 0
  return async ({ name, arguments: args = {} }: Params, ending: AbortSignal): Promise<CallResult> => {
    const tool = app.tools.find(one => one.name === name)?.tool
    if (tool === undefined) throw pageError('FORBIDDEN', `the app can call no tool of that name of the server ${app.server}`)
    if (!isRecord(args)) throw pageError('INVALID_VALUE', 'arguments must be an object')
    const key = ++last
    const show = (running: Running) => {
      const others = calls.get().filter(call => call.key !== key)
      calls.set([...others, { key, tool, running }].sort((a, b) => a.key - b.key).slice(-MOST_SHOWN))
    }
    const { result, problem } = await followCall(tool, args, ending, show)
    if (result) return callResultOf(result)
    throw problem instanceof Error ? problem : pageError('FAILED', 'the call has ended without a result')
  }
}

/** Links and messages: the app asks, the reader decides. */
function createQuestions(question: Value<AppQuestion | undefined>) {
  const ask = (kind: AppQuestion['kind'], text: string, ending: AbortSignal): Promise<object> =>
    new Promise(resolve => {
      const decide = (isGranted: boolean) => {
        question.set(undefined)
        ending.removeEventListener('abort', leave)
        resolve(isGranted ? {} : { isError: true })
      }
      const leave = () => decide(false)
      ending.addEventListener('abort', leave)
      question.set({ kind, text, decide })
    })
  const checked = async (kind: AppQuestion['kind'], text: string, ending: AbortSignal) => {
    if (question.get()) throw pageError('RATE_LIMITED', 'the reader has not answered the last question')
    return ask(kind, text, ending)
  }
  return {
    'ui/open-link': async ({ url }: Params, ending: AbortSignal) => checked('link', linkOf(url), ending),
    'ui/message': async ({ content }: Params, ending: AbortSignal) => checked('message', messageOf(content), ending),
  }
}

/** The address as the browser opens it. Throws INVALID_VALUE. */
function linkOf(given: unknown): string {
  const url = typeof given === 'string' && given.length <= LONGEST_URL ? URL.parse(given) : null
  const isGood = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isGood) throw pageError('INVALID_VALUE', 'url must be an address with http or https, without a name and password')
  return url.href
}

/** The text of a message, without hidden characters. Throws INVALID_VALUE. */
function messageOf(content: unknown): string {
  const parts = [content].flat().map((part: unknown) => (isRecord(part) && part.type === 'text' ? part.text : undefined))
  const isGood = parts.length > 0 && parts.every(text => typeof text === 'string')
  const text = isGood ? plainText(parts.join('\n')).trim() : ''
  if (text === '' || text.length > LONGEST_MESSAGE)
    throw pageError('INVALID_VALUE', `content must be texts of at most ${LONGEST_MESSAGE} characters`)
  return text
}
