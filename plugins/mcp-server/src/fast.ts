import type { Use } from '@svc/core'
import type { InputRequest } from '@svc/core/contracts'
import { type CallEnd, callOrTell } from './call.ts'
import type { Era } from './catalogue.ts'
import { type HttpAnswer, jsonAnswer, type RpcId } from './message.ts'
import type { Plain } from './plain.ts'
import type { Published } from './published.ts'
import { wireResult } from './result.ts'
import { forEra, isStateFault } from './tool-handlers.ts'

/** Where the SDK has to go on, and what came of the call so far. */
export interface Begun {
  readonly begun: CallEnd
}

/** What the era writes around a result. */
export interface Frame {
  readonly era: Era
  /** Members of every result, with the comma before them. */
  readonly result: string
  /** Members of every list. */
  readonly list: string
}

export const LEGACY_FRAME: Frame = { era: 'legacy', result: '', list: '' }

/** Since 2026-07-28, a result says that it is whole and who gives it, a list how long it holds. */
export function modernFrame(info: object): Frame {
  const result = `,"resultType":"complete","_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': info })}`
  return { era: 'modern', result, list: `,"ttlMs":0,"cacheScope":"private"${result}` }
}

interface Asker {
  readonly use: Use
  readonly can: readonly InputRequest['method'][]
  /** The caller takes what a tool logs. */
  readonly logs?: boolean
}

/**
 * Answers a plain request without building a server for it. `undefined` where that cannot be done; `Begun` where it has begun and needs more than one answer:
 * the SDK then goes on.
 */
export async function answerPlain(
  plain: Plain,
  frame: Frame,
  { catalogue, calls }: Published,
  { use, can, logs = false }: Asker
): Promise<HttpAnswer | Begun | undefined> {
  const { id } = plain
  if (plain.method === 'tools/list') {
    const page = catalogue().page(frame.era, plain.cursor)
    const next = page?.next === undefined ? '' : `,"nextCursor":${JSON.stringify(page.next)}`
    return page && jsonAnswer(resultText(id, `{"tools":${page.json}${next}${frame.list}}`))
  }
  const tool = catalogue().get(plain.name)
  if (!tool || (tool.tool.run && (plain.follows || logs))) return undefined
  const end = await callOrTell(calls, tool, plain.args, use, { dialog: { can } })
  if (end.type === 'input' || isStateFault(end)) return { begun: end }
  const { result } = end
  const json = forEra(result, frame.era) === result ? end.json : JSON.stringify(wireResult(forEra(result, frame.era)))
  return jsonAnswer(resultText(id, `${json.slice(0, -1)}${frame.result}}`))
}

const resultText = (id: RpcId, result: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
