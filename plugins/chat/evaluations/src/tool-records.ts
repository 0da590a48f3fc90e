import type { CallContext } from '@svc/core'
import type { EvaluationToolRecord, Json, ToolCall, ToolResult, ToolVerdict } from '@svc/core/contracts'

/** The recorded result of a tool call. Without arguments, it answers any call of the tool. */
export interface RecordedCall {
  readonly tool: string
  readonly arguments?: { readonly [name: string]: Json | undefined }
  readonly result: ToolResult
}

/** A turn whose tool calls are answered from a record. */
export interface RecordedTurn extends Disposable {
  /** Calls that were not in the record. */
  readonly unrecorded: number
}

interface OpenTurn {
  readonly owner: string
  readonly calls: readonly RecordedCall[]
  readonly used: Set<RecordedCall>
  unrecorded: number
}

const textResult = (text: string, isError = false): ToolResult => ({
  content: [{ type: 'text', text }],
  ...(isError ? { isError } : {}),
})

/** The record of a case as calls. */
export const recordedCalls = (record: readonly EvaluationToolRecord[]): RecordedCall[] =>
  record.map(({ tool, arguments: given, result, error }) => ({
    tool,
    ...(given === undefined ? {} : { arguments: given }),
    result:
      error === undefined ? textResult(typeof result === 'string' ? result : JSON.stringify(result)) : textResult(error, true),
  }))

/**
 * Answers the tool calls of turns from their records, as a tap of `Chat.hooks.toolCall`. The tap answers each call of such a turn, so
 * that no tool runs. A turn is known by its request id, which this plugin makes, and by its principal.
 */
export class ToolRecords {
  readonly #turns = new Map<string, OpenTurn>()
  readonly #tap: (verdict: ToolRecords['verdict']) => () => void
  #untap: (() => void) | undefined

  /** `tap` adds the tap and returns its removal. It is there only while such a turn runs: it costs each tool call of other turns, too. */
  constructor(tap: (verdict: ToolRecords['verdict']) => () => void) {
    this.#tap = tap
  }

  begin(requestId: string, owner: string, calls: readonly RecordedCall[]): RecordedTurn {
    const turn: OpenTurn = { owner, calls, used: new Set(), unrecorded: 0 }
    this.#turns.set(requestId, turn)
    this.#untap ??= this.#tap(this.verdict)
    return {
      get unrecorded() {
        return turn.unrecorded
      },
      [Symbol.dispose]: () => this.#end(requestId),
    }
  }

  #end(requestId: string): void {
    this.#turns.delete(requestId)
    if (this.#turns.size > 0) return
    this.#untap?.()
    this.#untap = undefined
  }

  readonly verdict = async (call: ToolCall, { requestId, principal }: CallContext): Promise<ToolVerdict | undefined> => {
    const turn = this.#turns.get(requestId)
    if (turn === undefined || turn.owner !== principal.id) return undefined
    const fitting = turn.calls.filter(recorded => fits(recorded, call))
    // equal calls get their results in order; the last one answers further calls
    const found = fitting.find(recorded => !turn.used.has(recorded)) ?? fitting.at(-1)
    if (found) {
      turn.used.add(found)
      return { verdict: 'answer', result: found.result }
    }
    turn.unrecorded += 1
    const text = `This call of ${call.tool} is not in the record, so the tool did not run.`
    return { verdict: 'answer', result: textResult(text, true) }
  }
}

const fits = (recorded: RecordedCall, { tool, arguments: given }: ToolCall) =>
  recorded.tool === tool && (recorded.arguments === undefined || sorted(recorded.arguments) === sorted(given))

/** JSON with sorted keys: the order of keys does not matter. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item
  )
