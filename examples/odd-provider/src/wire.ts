import type { ModelFailureKind, ModelRequest } from '@svc/core/contracts'
import { cutShort, type FrameReader, malformed, modelFailure } from '@svc/provider-http'

/** Body of `POST /say`. */
interface Asked {
  readonly voice: string
  readonly script: readonly { readonly who: string; readonly line: string }[]
  readonly most?: number
}

/** A line of the response. `so_far` is the whole text so far; `done` is in the last line, `oops` reports a failure. */
interface Line {
  readonly so_far?: string
  readonly done?: 'end' | 'limit'
  readonly cost?: { readonly heard: number; readonly said: number }
  readonly oops?: string
}

/** Converts a request. The server supports only text: the provider declares no tools and no images. */
export function askedOf({ model, messages, maxTokens }: ModelRequest): Asked {
  const script = messages.map(({ role, parts }) => ({
    who: role,
    line: parts.map(part => (part.type === 'text' ? part.text : '')).join(''),
  }))
  return { voice: model, script, ...(maxTokens === undefined ? {} : { most: maxTokens }) }
}

const OOPS: Readonly<Record<string, ModelFailureKind>> = {
  hoarse: 'overloaded',
  'too much': 'context_too_long',
  'not saying that': 'content_refused',
}

/** Reads the lines of one response. Throws MODEL_FAILED if it reports a failure, changes earlier text, or ends without `done`. */
export function createReader(provider: string): FrameReader {
  let said = ''
  let last: Line | undefined
  return {
    frame(data, _, emit) {
      const line: unknown = JSON.parse(data)
      if (!isLine(line) || last) throw malformed(provider)
      if (line.oops !== undefined) throw failed(provider, line.oops)
      const text = newIn(line.so_far ?? said, said)
      if (text === undefined) throw malformed(provider)
      said += text
      if (text !== '') emit({ type: 'text', text })
      if (line.done) last = line
    },
    end(emit) {
      if (!last) throw cutShort(provider)
      if (last.cost) emit({ type: 'usage', usage: { input: last.cost.heard, output: last.cost.said } })
      emit({ type: 'finish', reason: last.done === 'limit' ? 'length' : 'stop' })
    },
  }
}

/** Reports only known reasons, because the text of a server can contain anything. */
const failed = (provider: string, oops: string) =>
  modelFailure(
    provider,
    { kind: OOPS[oops] ?? 'overloaded' },
    `the upstream said ${OOPS[oops] ? `"${oops}"` : 'an unknown reason'}`
  )

/** The new text of a line. Half a character at the end waits for the next line. */
function newIn(text: string, said: string): string | undefined {
  if (!text.startsWith(said)) return undefined
  return text.slice(said.length).replace(/[\ud800-\udbff]$/, '')
}

const isLine = (value: unknown): value is Line =>
  typeof value === 'object' && value !== null && ['string', 'undefined'].includes(typeof (value as Line).so_far)
