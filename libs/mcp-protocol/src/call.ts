import { type SvcError, svcError } from '@svc/core'
import type { McpErrorClass, McpFailure, ToolStep } from '@svc/core/contracts'
import { stripResult } from '@svc/plugin-kit'

/** Details of a failed call besides its class. */
export interface FailureFacts {
  /** Whether the server received the call. `no` is certain. */
  readonly delivered?: 'no' | 'maybe' | 'yes'
  /** Code of the JSON-RPC error that the server returned. */
  readonly rpcCode?: number
  readonly cause?: unknown
}

const HINTS: Readonly<Record<McpErrorClass, string>> = {
  connection_refused: 'Check that the server runs: svc mcp test <name>',
  authentication_failed: 'Check the key, or log in: svc mcp login <name>',
  tool_not_found: 'List its tools: svc mcp tools <name>',
  timeout: 'Set a longer timeout, or request less',
  tool_error: 'Fix what the message of the tool names, and call it again',
  protocol_error: 'Check the server for protocol errors: svc mcp test <name>',
  cancelled: 'Call it again',
}
const RETRYABLE: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'timeout'])

/**
 * Creates the error MCP_CALL_FAILED. `text` must not contain credentials or local paths. The function removes hidden characters from it.
 */
export function callFailed(server: string, kind: McpErrorClass, text: string, facts: FailureFacts = {}): SvcError {
  const { delivered = 'maybe', rpcCode, cause } = facts
  const { text: message } = stripResult(text)
  return svcError('MCP_CALL_FAILED', `${server}: ${message}`, {
    details: {
      server,
      class: kind,
      message,
      // a repeated call could run twice if the server has received it
      retryable: delivered === 'no' && RETRYABLE.has(kind),
      delivered,
      ...(rpcCode !== undefined && { rpcCode }),
    },
    hint: HINTS[kind].replace('<name>', server),
    cause,
  })
}

/** Returns class and message of an error from `callFailed`. Any other error has the class `protocol_error`. */
export function failureOf(error: unknown): McpFailure {
  const details = (error as { details?: { class?: McpErrorClass; message?: string } } | undefined)?.details
  if (details?.class !== undefined && details.message !== undefined) return { class: details.class, message: details.message }
  return { class: 'protocol_error', message: error instanceof Error ? error.message : String(error) }
}

/** How the steps of a call ended: with a final step, with an error, without a final step, or because the reader stopped early. */
export type StepsEnd = { readonly last: ToolStep } | { readonly thrown: unknown } | 'incomplete' | 'abandoned'

type Steps = AsyncIterable<ToolStep>
const DONE = { done: true, value: undefined } as const

/**
 * Wraps the steps of a call and reports their end exactly once, before the reader sees it. The first `next` calls `open`, which begins the call.
 * This is a hand-written iterator: nested generators in every layer of a call cost more than the work of the layers.
 */
export const watchedSteps = (open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): Steps => ({
  [Symbol.asyncIterator]: () => readingOf(open, ended),
})

function readingOf(open: () => Steps | Promise<Steps>, ended: (end: StepsEnd) => void): AsyncIterator<ToolStep> {
  let source: AsyncIterator<ToolStep> | undefined
  let state: 'new' | 'begun' | 'reported' = 'new'
  let isOver = false
  const report = (end: StepsEnd) => {
    if (state === 'begun') ended(end)
    state = 'reported'
  }
  return {
    async next() {
      if (isOver) return DONE
      try {
        if (source === undefined) {
          state = 'begun'
          const opened = open()
          const steps = opened instanceof Promise ? await opened : opened
          // the reader can have stopped meanwhile: the call must not begin then
          if (isOver) return DONE
          source = steps[Symbol.asyncIterator]()
        }
        const item = await source.next()
        if (item.done) report('incomplete')
        else if (isLast(item.value)) report({ last: item.value })
        return item
      } catch (error) {
        isOver = true
        report({ thrown: error })
        throw error
      }
    },
    return() {
      isOver = true
      report('abandoned')
      return source?.return?.() ?? Promise.resolve(DONE)
    },
  }
}

const isLast = ({ type }: ToolStep) => type === 'result' || type === 'input'

/** Above this many unread steps, the oldest progress is dropped. */
const MAX_STEPS = 256

/** The steps of a call that its reader has not read yet. It ends with a result, a question or a failure. */
export class StepQueue implements AsyncIterable<ToolStep>, AsyncIterator<ToolStep> {
  readonly #steps: ToolStep[] = []
  #failure: Error | undefined
  /** The reader has read the last step. */
  #isOver = false
  #reader: PromiseWithResolvers<IteratorResult<ToolStep>> | undefined;

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Returns the next step; throws the failure. Only one reader waits at a time. */
  next(): Promise<IteratorResult<ToolStep>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    const value = this.#steps.shift()
    if (value !== undefined) return Promise.resolve(this.#read(value))
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  push(step: ToolStep): void {
    if (this.#reader !== undefined) {
      this.#reader.resolve(this.#read(step))
      this.#reader = undefined
      return
    }
    if (this.#steps.length === MAX_STEPS) {
      const oldest = this.#steps.findIndex(one => one.type === 'progress' || one.type === 'log')
      this.#steps.splice(Math.max(0, oldest), 1)
    }
    this.#steps.push(step)
  }

  /** Ends the steps with a failure, if there is none yet. */
  fail(failure: Error): void {
    this.#failure ??= failure
    this.#reader?.reject(this.#failure)
    this.#reader = undefined
  }

  /** Goes on after a question. */
  reopen(): void {
    this.#isOver = false
  }

  #read(value: ToolStep): IteratorResult<ToolStep> {
    this.#isOver = value.type === 'result' || value.type === 'input'
    return { done: false, value }
  }
}
