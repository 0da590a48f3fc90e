import { svcError } from '@svc/core'
import type { ModelCallBegun, ModelCallEvent, ModelEvent, RequestField } from '@svc/core/contracts'

/** An event as the server of a model sent it: its data is JSON, parsed or as text. */
export type NativeEvent = Extract<ModelEvent, { type: 'native' }>

export const nativeText = ({ data }: NativeEvent): string => (typeof data === 'string' ? data : JSON.stringify(data))

/** Maximum characters of original events that wait for the first part of the answer. */
const MOST_HELD = 4 * 1024 * 1024

/**
 * The events of a model call, for a route that streams them. Until the first part of an answer, another model can begin it again: the
 * events before are held back, and those of an abandoned answer are left out.
 */
export class AnswerEvents {
  readonly #events: AsyncIterator<ModelCallEvent>
  #start: ModelCallBegun | undefined
  #natives: NativeEvent[] = []
  #held = 0

  constructor(events: AsyncIterable<ModelCallEvent>) {
    this.#events = events[Symbol.asyncIterator]()
  }

  get provider(): string {
    return this.#start?.provider ?? ''
  }
  get dropped(): readonly RequestField[] {
    return this.#start?.dropped ?? []
  }
  /** The original events before the first part. */
  get natives(): readonly NativeEvent[] {
    return this.#natives
  }
  /** Whether the server of the model speaks the protocol of the request. */
  get isNative(): boolean {
    return this.#held > 0
  }

  /** Reads up to the first part of the answer, or its end, and returns it. Throws the error of the call. */
  async open(): Promise<ModelCallEvent> {
    for (;;) {
      const event = await this.next()
      if (!event) throw callCut()
      if (event.type === 'end' && event.status !== 'completed') continue // the stream throws next
      if (event.type === 'start') this.#restart(event)
      else if (event.type === 'native') {
        if (this.#hold(event)) return event
      } else if (isPart(event)) return event // other events before a part have no frames
    }
  }

  async next(): Promise<ModelCallEvent | undefined> {
    const { done, value } = await this.#events.next()
    return done ? undefined : value
  }

  close(): void {
    void this.#events.return?.().catch(() => {})
  }

  #restart(start: ModelCallBegun): void {
    this.#start = start
    this.#natives = []
    this.#held = 0
  }

  /** Holds an original event back. Returns true if there are too many to hold: then the event counts as a part. */
  #hold(event: NativeEvent): boolean {
    this.#held += nativeText(event).length
    if (this.#held > MOST_HELD) return true
    this.#natives.push(event)
    return false
  }
}

/** The stream of a model call ended without its last event. */
export const callCut = () => svcError('MODEL_CALL_CUT', 'the model call ended without an end event')

/** An event of a model came in an order that cannot be sent to the client any more. */
export const beganTwice = () => svcError('MODEL_CALL_REPEATED', 'the model began a second answer after the first was sent')

/** Whether an event is a part of an answer, or its end. After one, the call does not begin again. */
function isPart(event: ModelCallEvent): boolean {
  if (event.type === 'text') return event.text !== ''
  if (event.type === 'reasoning') return event.text !== '' || event.providerData !== undefined
  return event.type === 'tool_call' || event.type === 'tool_call_delta' || event.type === 'end'
}

/** Whether a promise settles in this time. */
export async function settlesIn(ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), ms)
  const settled = async () => {
    await work.catch(() => {})
    return true
  }
  try {
    return await Promise.race([settled(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
