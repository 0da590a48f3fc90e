import type { FinishReason, ModelEvent } from '@svc/core/contracts'
import { Calls } from './calls.ts'
import { mergeMetadata, plainMetadata, writeTextData } from './provider-data.ts'
import { Reasoning } from './reasoning.ts'
import type { Metadata, SdkFinish, StreamPart, Warning } from './sdk.ts'
import { toUsage } from './usage.ts'

/** What the events of one answer need around them. */
export interface EventsParts {
  readonly emit: (event: ModelEvent) => void
  readonly warn: (warnings: readonly Warning[]) => void
  /** The failure that an error inside the stream stands for. */
  readonly failureOf: (error: unknown) => Error
  /** The failure of an answer that ends without having been told to its end. */
  readonly cut: () => Error
}

/** Turns the stream parts of one answer into events. */
export interface Events {
  /** Throws the failure that a part tells. */
  take(part: StreamPart): void
  /** The stream has ended. Throws when the answer had not. */
  end(): void
}

type Takers = { readonly [T in StreamPart['type']]: (part: Extract<StreamPart, { type: T }>) => void }

/** Makes the events of one answer. Parts of unknown types (sources, files, raw chunks) are passed over. */
export function createEvents({ emit, warn, failureOf, cut }: EventsParts): Events {
  const [calls, reasoning, texts] = [new Calls(), new Reasoning(), new Texts()]
  let finished = false
  const other = (event: ModelEvent) => {
    texts.close()
    emit(event)
  }
  const takers: Takers = {
    'stream-start': part => warn(part.warnings),
    'text-start': part => texts.about(part.providerMetadata),
    'text-delta': part => {
      if (part.delta === '') return
      texts.open()
      emit({ type: 'text', text: part.delta })
    },
    'text-end': part => texts.about(part.providerMetadata),
    'reasoning-start': part => reasoning.take(part.id, part, false, other),
    'reasoning-delta': part => reasoning.take(part.id, part, false, other),
    'reasoning-end': part => reasoning.take(part.id, part, true, other),
    'tool-input-start': part => calls.begin(part.id, part.toolName, part.providerExecuted ?? false),
    'tool-input-delta': part => {
      calls.add(part.id, part.delta)
      emit(ALIVE)
    },
    'tool-input-end': () => {},
    'tool-call': part => calls.whole(part, other),
    finish({ finishReason, usage }) {
      const word = wordOf(finishReason)
      if (CUT.has(word)) throw cut()
      reasoning.end(other)
      calls.end(other, word === 'length')
      const tokens = toUsage(usage)
      if (tokens) emit({ type: 'usage', usage: tokens })
      const data = texts.data()
      const reason = calls.any ? 'tool_calls' : (REASONS[word] ?? 'stop')
      emit({ type: 'finish', reason, ...(data === undefined ? {} : { providerData: data }) })
      finished = true
    },
    error: part => {
      throw failureOf(part.error)
    },
  }
  return {
    take(part) {
      if (!finished && Object.hasOwn(takers, part.type)) takers[part.type](part as never)
    },
    end() {
      if (!finished) throw cut()
    },
  }
}

/** Long arguments are no silence. */
const ALIVE: ModelEvent = { type: 'reasoning', text: '' }

/** What packages say of an end whose reason never came: the body just stopped. */
const CUT: ReadonlySet<string> = new Set(['interrupted', 'error', 'unknown', ''])
const REASONS: Readonly<Record<string, FinishReason>> = { stop: 'stop', length: 'length', 'content-filter': 'content_filter' }

/** The reason as one word; empty where the upstream gave none. */
function wordOf(finish: SdkFinish | undefined): string {
  if (typeof finish === 'string') return finish
  return finish?.unified === 'other' && finish.raw === undefined ? '' : (finish?.unified ?? '')
}

/** What is told about each run of text, in order: text has no place of its own for it. */
class Texts {
  readonly #told: (Metadata | undefined)[] = []
  #ahead: Metadata | undefined
  #open = false

  open(): void {
    if (!this.#open) this.#told.push(this.#ahead)
    this.#open = true
    this.#ahead = undefined
  }

  close(): void {
    this.#open = false
  }

  about(metadata: Metadata | undefined): void {
    const data = plainMetadata(metadata)
    if (!this.#open) this.#ahead = data
    else this.#told.push(mergeMetadata(this.#told.pop(), data))
  }

  data() {
    return writeTextData(this.#told)
  }
}
