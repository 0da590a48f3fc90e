import { setImmediate } from 'node:timers/promises'

/** What the scripted package is told by the `options` of its entry. */
export interface Script {
  readonly version?: string
  /** What it streams. */
  readonly parts?: readonly unknown[]
  /** What it generates where no stream is asked for; without it, it has no way to. */
  readonly whole?: unknown
  /** What it throws instead: an error with these properties, or a bare text. */
  readonly throws?: Readonly<Record<string, unknown>> | string
  /** Goes on for ever, and heeds no signal. */
  readonly deaf?: boolean
  /** Streams the prompt that it was given, as JSON. */
  readonly echo?: boolean
  readonly refuses?: string
}

/** A package as anybody could write one: its models stream what they are told. */
export function createScripted({ version = 'v4', parts = [], throws, deaf = false, echo = false, refuses, whole }: Script) {
  if (refuses !== undefined) throw new Error(refuses)
  const doStream = async ({ prompt }: { prompt: unknown }) => {
    // oxlint-disable-next-line typescript/only-throw-error
    if (throws) throw typeof throws === 'string' ? throws : Object.assign(new Error('thrown'), throws)
    if (echo) return { stream: ReadableStream.from([{ type: 'text-delta', id: '1', delta: JSON.stringify(prompt) }, ...parts]) }
    return { stream: deaf ? ReadableStream.from(endless()) : ReadableStream.from(parts) }
  }
  const generating = whole === undefined ? {} : { doGenerate: async () => whole }
  return {
    languageModel: (modelId: string) => ({
      specificationVersion: version,
      provider: 'scripted',
      modelId,
      doStream,
      ...generating,
    }),
  }
}

/** How many streams are still being made, and how many parts they have made. */
export const playing = { streams: 0, parts: 0 }

async function* endless() {
  playing.streams++
  try {
    for (;;) {
      playing.parts++
      yield { type: 'text-delta', id: '1', delta: 'on ' }
      await setImmediate()
    }
  } finally {
    playing.streams--
  }
}
